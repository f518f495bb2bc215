/* A home that a daemon and its command line share with us: our box is stopped
   by them while it runs a command of ours, and theirs is ours to use. */
#include "check.h"

static void show(const char *text, int is_stderr, void *user_data) {
  (void)is_stderr;
  (void)user_data;
  fputs(text, stdout);
  fflush(stdout);
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  CBoxHandle *box = NULL;
  char *json = NULL;
  int exit_code = 77;

  WORKS(sandbox_create_named_box(runtime, "ours", options_with(",\"auto_remove\":false"), &box, &err));
  FAILS(SANDBOX_CANCELED,
        sandbox_execute(box, "/bin/sh", "[\"-c\",\"echo up; exec sleep 600\"]", show, NULL, &exit_code, &err));
  SAYS("the box was stopped");
  CHECK(getchar() == EOF); /* stdin ends when the test has stopped the box */
  WORKS(sandbox_box_info(box, &json, &err));
  CHECK(strstr(json, "\"status\":\"stopped\""));
  sandbox_free_string(json);
  sandbox_box_free(box);

  WORKS(sandbox_get(runtime, "theirs", &box, &err));
  WORKS(sandbox_execute(box, "/bin/cat", "[\"/made\"]", show, NULL, &exit_code, &err));
  CHECK(exit_code == 0);
  sandbox_box_free(box);
  WORKS(sandbox_remove(runtime, "theirs", 1, &err));
  WORKS(sandbox_remove(runtime, "ours", 0, &err));
  sandbox_runtime_free(runtime);
  return 0;
}
