/* What can go wrong, and how a program distinguishes it: by the code, not by the text. */
#include "common.h"

/* Prints a failure and makes the error struct ready for the next call. */
static void explain(const char *what, SandboxErrorCode code, CSandboxError *err) {
  printf("%s: code %d%s%s\n", what, (int)code, err->message ? ", " : "", err->message ? err->message : "");
  sandbox_error_free(err);
}

int main(int argc, char **argv) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  int exit_code = 0;

  must(sandbox_runtime_new(NULL, NULL, &runtime, &err), &err);
  explain("incomplete options", sandbox_create_box(runtime, "{\"cpus\": 1}", &box, &err), &err);
  explain("no such box", sandbox_get(runtime, "nobody", &box, &err), &err);
  must(sandbox_create_box(runtime, options_from(argc, argv, "true"), &box, &err), &err);

  explain("no such command", sandbox_execute(box, "no-such-command", NULL, NULL, NULL, &exit_code, &err), &err);
  printf("  its exit code is %d\n", exit_code);
  explain("a command that fails", sandbox_execute(box, "false", NULL, NULL, NULL, &exit_code, &err), &err);
  printf("  its exit code is %d\n", exit_code);

  SandboxCommand sleeper = {0};
  sleeper.command = "sleep";
  sleeper.args_json = "[\"60\"]";
  sleeper.timeout_secs = 0.2;
  explain("a command that takes too long", sandbox_execute_cmd(box, &sleeper, NULL, NULL, &exit_code, &err), &err);

  sandbox_box_free(box);
  explain("a handle that was released", sandbox_stop_box(box, &err), &err);
  sandbox_runtime_free(runtime);
  return 0;
}
