/* Calls from another stack than the thread's own, as those of coroutines and of koffi: each costs what any call does. */
#define _GNU_SOURCE
#include <ucontext.h>

#include "check.h"

enum { CALLS = 200, STACK = 256 << 10 };

static ucontext_t caller, other;
static char stack[STACK];

/* Returns how many bytes this process has read, /proc/self/maps among them. */
static long long bytes_read(void) {
  long long n = -1;
  FILE *io = fopen("/proc/self/io", "r");
  CHECK(io != NULL && fscanf(io, "rchar: %lld", &n) == 1);
  fclose(io);
  return n;
}

static void call_often(void) {
  for (int i = 0; i < CALLS; i++)
    CHECK(sandbox_box_id(NULL) == NULL);
}

int main(void) {
  CHECK(sandbox_box_id(NULL) == NULL);
  CHECK(getcontext(&other) == 0);
  other.uc_stack.ss_sp = stack, other.uc_stack.ss_size = sizeof stack, other.uc_link = &caller;
  makecontext(&other, call_often, 0);
  long long before = bytes_read();
  CHECK(swapcontext(&caller, &other) == 0);
  CHECK(bytes_read() - before < CALLS * 1000LL); /* the maps of a process are some 5,000 bytes */
  return 0;
}
