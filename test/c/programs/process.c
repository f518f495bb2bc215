/*
 * What the library does to the process that loads it: nothing but Go's own
 * signal handlers. Loaded with dlopen, so that there is a before.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;

struct process {
  struct sigaction actions[65];
  sigset_t blocked;
  char cwd[4096];
  mode_t mask;
  char environment[1 << 16];
};

static void look(struct process *p) {
  memset(p, 0, sizeof *p);
  for (int s = 1; s <= 64; s++)
    sigaction(s, NULL, &p->actions[s]);
  sigprocmask(SIG_BLOCK, NULL, &p->blocked);
  CHECK(getcwd(p->cwd, sizeof p->cwd));
  p->mask = umask(0);
  umask(p->mask);
  for (char **e = environ; *e; e++)
    strncat(p->environment, *e, sizeof p->environment - strlen(p->environment) - 1);
}

/* The handlers that Go's runtime puts in, and no others. */
static int is_gos(int s) {
  return s == SIGBUS || s == SIGFPE || s == SIGSEGV || s == SIGPIPE || s == SIGURG || s == 33;
}

static void compare(const struct process *before) {
  static struct process after;
  look(&after);
  for (int s = 1; s <= 64; s++) {
    if (!is_gos(s) && before->actions[s].sa_handler != after.actions[s].sa_handler) {
      fprintf(stderr, "the handler of signal %d was changed\n", s);
      exit(1);
    }
  }
  CHECK(memcmp(&before->blocked, &after.blocked, sizeof after.blocked) == 0);
  CHECK(strcmp(before->cwd, after.cwd) == 0);
  CHECK(before->mask == after.mask);
  CHECK(strcmp(before->environment, after.environment) == 0);
  CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

#define FIND(type, name) type name; *(void **)&name = dlsym(lib, "sandbox_" #name); CHECK(name)

int main(void) {
  static struct process before;
  /* Set after the start: the library must see the environment as it is. */
  CHECK(setenv("SANDBOX_HOME", getenv("LATE_HOME"), 1) == 0);
  umask(027);
  look(&before);
  CHECK(!dlopen(getenv("LIBSANDBOX"), RTLD_NOW | RTLD_NOLOAD)); /* this is before */
  void *lib = dlopen(getenv("LIBSANDBOX"), RTLD_NOW);
  CHECK(lib);
  FIND(__typeof__(&sandbox_runtime_new), runtime_new);
  FIND(__typeof__(&sandbox_create_box), create_box);
  FIND(__typeof__(&sandbox_execute), execute);
  FIND(__typeof__(&sandbox_runtime_free), runtime_free);
  compare(&before);

  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  int exit_code = 77;
  CHECK(runtime_new(NULL, NULL, &runtime, &err) == SANDBOX_OK);
  CHECK(create_box(runtime, options_with(""), &box, &err) == SANDBOX_OK);
  CHECK(execute(box, "sh", "[\"-c\",\"exit 9\"]", NULL, NULL, &exit_code, &err) == SANDBOX_OK);
  CHECK(exit_code == 9);
  compare(&before);
  /* The home that was set after the start is the one in use. */
  CHECK(chdir(getenv("LATE_HOME")) == 0 && access("boxes", F_OK) == 0 && chdir(before.cwd) == 0);
  runtime_free(runtime);
  compare(&before);
  return 0;
}
