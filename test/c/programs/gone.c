/* A daemon that goes away while its output is read: every call says so, none waits, and nothing crashes. */
#include <poll.h>
#include <unistd.h>

#include "check.h"

static CBoxHandle *box;

static CSandboxExecution *start(const char *script) {
  static char args[256];
  CSandboxExecution *x = NULL;
  snprintf(args, sizeof args, "[\"-c\",\"%s\"]", script);
  SandboxCommand cmd = {"sh", args, NULL, NULL, NULL, 0};
  WORKS(sandbox_exec_start(box, &cmd, 1, NULL, &x, &err));
  return x;
}

/* Ends the daemon when output has come, through whoever reads our standard output. */
static void asks_for_its_end(const char *text, int is_stderr, void *user_data) {
  int *asked = user_data;
  (void)is_stderr;
  if (!*asked) {
    *asked = 1;
    puts(text[0] ? "end it" : "");
    fflush(stdout);
  }
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  box = new_box(runtime);
  CSandboxExecution *quiet = start("sleep 1000"), *polled = start("sleep 1000"), *talks = start("yes");
  int end = -1, out = -1, asked = 0, exit_code = 77;
  char piece[65536], *json = NULL;
  size_t n = 77;
  WORKS(sandbox_exec_fd(polled, SANDBOX_EXIT, &end, &err));
  WORKS(sandbox_exec_fd(polled, SANDBOX_STDOUT, &out, &err));
  WORKS(sandbox_exec_read(talks, piece, sizeof piece, &n, NULL, &err));

  FAILS(SANDBOX_UNAVAILABLE, sandbox_execute(box, "yes", NULL, asks_for_its_end, &asked, &exit_code, &err));
  CHECK(exit_code == 77 && asked);
  FAILS(SANDBOX_UNAVAILABLE, sandbox_exec_wait(quiet, &exit_code, &err));
  FAILS(SANDBOX_UNAVAILABLE, sandbox_exec_wait(quiet, &exit_code, &err));
  SAYS("lost");
  struct pollfd ended = {end, POLLIN, 0};
  CHECK(poll(&ended, 1, 60000) == 1 && read(out, piece, 1) == 0);
  FAILS(SANDBOX_UNAVAILABLE, sandbox_exec_wait(polled, &exit_code, &err));
  SandboxErrorCode code;
  do
    code = sandbox_exec_read(talks, piece, sizeof piece, &n, NULL, NULL); /* what had come before */
  while (code == SANDBOX_OK && n > 0);
  CHECK(code == SANDBOX_UNAVAILABLE && n == 0);
  FAILS(SANDBOX_UNAVAILABLE, sandbox_exec_kill(talks, 0, &err));
  FAILS(SANDBOX_UNAVAILABLE, sandbox_exec_detach(talks, &err));
  FAILS(SANDBOX_UNAVAILABLE, sandbox_exec_info(quiet, &json, &err));
  FAILS(SANDBOX_UNAVAILABLE, sandbox_box_info(box, &json, &err));
  sandbox_exec_free(quiet);
  sandbox_runtime_free(runtime);
  return 0;
}
