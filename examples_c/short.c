/* The four lines of the README: a box, a command, its output. */
#include <stdio.h>
#include <sandbox.h>

int main(void) {
  CSandboxSimple *box = NULL;
  CSandboxExecResult *result = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};

  /* README begins */
  const char *args[] = {"-c", "print(2**100)"};
  if (sandbox_simple_new("default", 0, 0, &box, &err) || sandbox_simple_run(box, "python3", args, 2, &result, &err))
    fprintf(stderr, "%s\n", err.message);
  else
    fputs(result->stdout_text, stdout);
  /* README ends */

  int code = err.code;
  sandbox_result_free(result);
  sandbox_simple_free(box); /* removes the box */
  sandbox_error_free(&err);
  return code;
}
