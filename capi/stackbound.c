#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

/* Go asks for the bounds of the calling thread's stack at each call that comes on another stack, as those of
 * koffi in Node.js and of coroutines do (callbackUpdateSystemStack in Go's runtime/cgocall.go). For the main
 * thread glibc then reads /proc/self/maps, which takes 0.2 ms. Its bounds stay the same, so it asks once.
 * libsandbox.so is linked with --wrap=pthread_getattr_np; without that option this is not called. */
int __real_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr) __attribute__((weak));

int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attr) {
  static void *lowest; /* only the main thread uses these two */
  static size_t size;
  if (!pthread_equal(thread, pthread_self()) || gettid() != getpid()) return __real_pthread_getattr_np(thread, attr);
  if (size != 0) return pthread_attr_setstack(attr, lowest, size);
  int failure = __real_pthread_getattr_np(thread, attr);
  if (failure == 0) pthread_attr_getstack(attr, &lowest, &size);
  return failure;
}
