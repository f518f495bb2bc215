/* A box with a name that is stopped, started and found again; its disk stays. */
#include "common.h"

static void show(const char *text, int is_stderr, void *user_data) {
  (void)user_data;
  fputs(text, is_stderr ? stderr : stdout);
}

static void run(CBoxHandle *box, const char *args_json) {
  CSandboxError err = {SANDBOX_OK, NULL};
  int exit_code = 0;
  must(sandbox_execute(box, "sh", args_json, show, NULL, &exit_code, &err), &err);
}

int main(int argc, char **argv) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  char *json = NULL;

  must(sandbox_runtime_new(NULL, NULL, &runtime, &err), &err);
  must(sandbox_create_named_box(runtime, "lifecycle", options_from(argc, argv, "false"), &box, &err), &err);
  run(box, "[\"-c\", \"echo kept > /root/note; echo written\"]");
  must(sandbox_stop_box(box, &err), &err);
  sandbox_box_free(box);

  must(sandbox_get(runtime, "lifecycle", &box, &err), &err);
  must(sandbox_box_info(box, &json, &err), &err);
  puts(strstr(json, "\"status\":\"stopped\"") ? "stopped" : json);
  sandbox_free_string(json);
  must(sandbox_start_box(box, &err), &err);
  run(box, "[\"-c\", \"cat /root/note\"]");
  sandbox_box_free(box);

  must(sandbox_remove(runtime, "lifecycle", 1, &err), &err);
  must(sandbox_list_info(runtime, &json, &err), &err);
  puts(strstr(json, "\"name\":\"lifecycle\"") ? json : "removed");
  sandbox_free_string(json);
  sandbox_runtime_free(runtime);
  return 0;
}
