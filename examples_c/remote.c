/*
 * The same program on this host's home or on a server: the environment decides,
 * as it does for the command line. SANDBOX_REST_URL=unix:///PATH names a
 * daemon's socket.
 */
#include "common.h"

static void show(const char *text, int is_stderr, void *user_data) {
  (void)user_data;
  fputs(text, is_stderr ? stderr : stdout);
}

int main(int argc, char **argv) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  int exit_code = 1;

  must(sandbox_runtime_open(NULL, &runtime, &err), &err);
  must(sandbox_create_box(runtime, options_from(argc, argv, "true"), &box, &err), &err);
  must(sandbox_execute(box, "echo", "[\"the same, wherever the box is\"]", show, NULL, &exit_code, &err), &err);

  sandbox_runtime_free(runtime); /* removes the box, too */
  return exit_code;
}
