/* What the attacks of a family have in common. Each runs in a process of its own, and
   tells what became of it in one line: its name, a verdict, and why, with tabs between. */
#ifndef ATTACK_H
#define ATTACK_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A wall held, an attack got through, or it did not run. */
enum verdict { HELD, GOT, NOT_RUN };

struct attack {
  const char *name;
  enum verdict (*run)(const struct attack *);
  const char *text;
  long args[7];
};

static char why[512];

/* told notes why a verdict is what it is, and returns the verdict. */
static inline enum verdict told(enum verdict v, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  return v;
}

/* refused is the verdict on a call that must fail. One that fails because it makes no
   sense has met no wall. */
static inline enum verdict refused(long result) {
  if (result == -1) return told(errno == EINVAL || errno == EFAULT || errno == EBADF ? NOT_RUN : HELD, "%s", strerrorname_np(errno));
  return told(GOT, "it returned %ld", result);
}

/* call makes the system call of args, which must fail. */
static inline enum verdict call(const struct attack *a) {
  return refused(syscall(a->args[0], a->args[1], a->args[2], a->args[3], a->args[4], a->args[5], a->args[6]));
}

/* given writes the text of args to the file of text, which must fail. */
static inline enum verdict given(const struct attack *a) {
  const char *value = (const char *)a->args[0];
  int fd = open(a->text, O_WRONLY | O_CLOEXEC);
  return refused(fd < 0 ? -1 : write(fd, value, strlen(value)));
}

/* written does the same with a number. */
static inline enum verdict written(const struct attack *a) {
  struct attack one = {a->name, 0, a->text, {(long)"1"}};
  return given(&one);
}

/* opened opens the file of text with the flags of args, which must fail. */
static inline enum verdict opened(const struct attack *a) { return refused(open(a->text, (int)a->args[0] | O_CLOEXEC)); }

static void show(const char *name, enum verdict v, const char *because) {
  printf("%s\t%s\t%s\n", name, v == HELD ? "held" : v == GOT ? "GOT THROUGH" : "NOT RUN", because);
  fflush(stdout);
}

/* judge runs one attack in a process of its own. One that a signal ends has not run, but
   for SIGSYS, by which the kernel refuses a call. */
static void judge(const struct attack *a) {
  int said[2], status;
  char line[sizeof why] = "";
  if (pipe2(said, O_CLOEXEC)) {
    show(a->name, NOT_RUN, "no pipe");
    return;
  }
  pid_t child = fork();
  if (child == 0) {
    alarm(60); /* one that waits for ever has not run */
    enum verdict v = a->run(a);
    (void)!write(said[1], why, strlen(why));
    _exit(v);
  }
  close(said[1]);
  (void)!read(said[0], line, sizeof line - 1);
  close(said[0]);
  if (child < 0 || waitpid(child, &status, 0) != child)
    show(a->name, NOT_RUN, "no process");
  else if (WIFEXITED(status))
    show(a->name, (enum verdict)WEXITSTATUS(status), line);
  else
    show(a->name, WTERMSIG(status) == SIGSYS ? HELD : NOT_RUN, strsignal(WTERMSIG(status)));
}

/* attack_all announces how many attacks there are, and runs them. */
static int attack_all(const struct attack *all, size_t n) {
  printf("plan\t%zu\n", n);
  for (size_t i = 0; i < n; i++) judge(&all[i]);
  return 0;
}

#define ATTACK_ALL(all) attack_all(all, sizeof(all) / sizeof *(all))

#endif
