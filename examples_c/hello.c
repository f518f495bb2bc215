#include <stdio.h>
#include <sandbox.h>

static void show(const char *text, int is_stderr, void *user_data) {
  (void)user_data;
  fputs(text, is_stderr ? stderr : stdout);
}

int main(void) {
  const char *options = "{\"rootfs\": {\"Image\": \"default\"}, \"env\": [], \"volumes\": [],"
                        " \"network\": \"Isolated\", \"ports\": []}";
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  int exit_code = 1;
  if (sandbox_runtime_new(NULL, NULL, &runtime, &err) || sandbox_create_box(runtime, options, &box, &err) ||
      sandbox_execute(box, "python3", "[\"-c\", \"print('from a box: 2**100 =', 2**100)\"]", show, NULL, &exit_code, &err))
    fprintf(stderr, "%s\n", err.message);
  sandbox_error_free(&err);
  sandbox_runtime_free(runtime); /* removes the box, too */
  return exit_code;
}
