/* The shortest way: one box, complete results, no set-up. */
#include <stdio.h>
#include <sandbox.h>

int main(void) {
  CSandboxSimple *box = NULL;
  CSandboxExecResult *result = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  const char *args[] = {"-c", "echo hello from $(hostname | cut -c1-4); exit 3"};

  if (sandbox_simple_new("default", 0, 0, &box, &err) || sandbox_simple_run(box, "sh", args, 2, &result, &err)) {
    fprintf(stderr, "error %d: %s\n", (int)err.code, err.message);
    sandbox_error_free(&err);
    sandbox_simple_free(box);
    return 1;
  }
  printf("exit code %d, stdout: %s", result->exit_code, result->stdout_text);
  sandbox_result_free(result);
  sandbox_simple_free(box); /* stops and removes it */
  return 0;
}
