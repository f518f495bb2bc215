/* Every parameter of every function may be NULL: that is refused, and never crashes. */
#include "check.h"

#define MARK ((void *)&err) /* what an out parameter held before */

int main(void) {
  const char *doc = options_with("");
  CSandboxRuntime *runtime = NULL, *no_runtime = (CSandboxRuntime *)MARK;
  CBoxHandle *box = (CBoxHandle *)MARK;
  CSandboxSimple *simple = (CSandboxSimple *)MARK;
  CSandboxExecResult *result = (CSandboxExecResult *)MARK;
  char *json = (char *)MARK;
  int exit_code = 77;
  SandboxCommand nothing = {0};

  CHECK(strcmp(sandbox_version(), "0.1.0") == 0);

  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_new(NULL, NULL, NULL, &err)), SAYS("out");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_shutdown(NULL, 0, &err)), SAYS("runtime");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_metrics(NULL, &json, &err)), SAYS("runtime");
  CHECK(json == NULL);

  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(NULL, doc, &box, &err)), SAYS("runtime");
  CHECK(box == NULL);
  box = (CBoxHandle *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_named_box(NULL, "n", doc, &box, &err)), SAYS("runtime");
  CHECK(box == NULL);
  box = (CBoxHandle *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get(NULL, "n", &box, &err)), SAYS("runtime");
  CHECK(box == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_remove(NULL, "n", 1, &err)), SAYS("runtime");
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_list_info(NULL, &json, &err)), SAYS("runtime");
  CHECK(json == NULL);
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get_info(NULL, "n", &json, &err)), SAYS("runtime");
  CHECK(json == NULL);

  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_start_box(NULL, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_stop_box(NULL, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_pause_box(NULL, 0, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_resume_box(NULL, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_update_box(NULL, "{}", &err)), SAYS("box");
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_info(NULL, &json, &err)), SAYS("box");
  CHECK(json == NULL);
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_metrics(NULL, &json, &err)), SAYS("box");
  CHECK(json == NULL);
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_metrics_series(NULL, NULL, NULL, 0, &json, &err)), SAYS("box");
  CHECK(json == NULL);
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_snapshot(NULL, "n", &json, &err)), SAYS("box");
  CHECK(json == NULL);
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_clone(NULL, "{}", &json, &err)), SAYS("box");
  CHECK(json == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_rollback(NULL, "n", &err)), SAYS("box");
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_diff(NULL, NULL, 0, NULL, &json, &err)), SAYS("box");
  CHECK(json == NULL);
  json = (char *)MARK;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_snapshots(NULL, NULL, &json, &err)), SAYS("runtime");
  CHECK(json == NULL);
  CHECK(sandbox_box_id(NULL) == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute(NULL, "true", NULL, NULL, NULL, &exit_code, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute_cmd(NULL, &nothing, NULL, NULL, &exit_code, &err)), SAYS("box");
  CHECK(exit_code == 77);

  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_new("default", 0, 0, NULL, &err)), SAYS("out");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_new(NULL, 0, 0, &simple, &err)), SAYS("image");
  CHECK(simple == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run(NULL, "true", NULL, 0, &result, &err)), SAYS("simple");
  CHECK(result == NULL);

  /* No error struct: the answer is the return value alone. */
  CHECK(sandbox_runtime_new(NULL, NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_runtime_shutdown(NULL, 0, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_runtime_metrics(NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_create_box(NULL, NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_create_named_box(NULL, NULL, NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_start_box(NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_stop_box(NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_pause_box(NULL, 0, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_resume_box(NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_get(NULL, NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_remove(NULL, NULL, 0, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_list_info(NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_get_info(NULL, NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_box_info(NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_box_metrics(NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_execute(NULL, NULL, NULL, NULL, NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_execute_cmd(NULL, NULL, NULL, NULL, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_simple_new(NULL, 0, 0, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);
  CHECK(sandbox_simple_run(NULL, NULL, NULL, 0, NULL, NULL) == SANDBOX_INVALID_ARGUMENT);

  sandbox_runtime_free(NULL);
  sandbox_box_free(NULL);
  sandbox_simple_free(NULL);
  sandbox_result_free(NULL);
  sandbox_free_string(NULL);
  sandbox_error_free(NULL);

  /* With a live runtime, each of the other parameters. */
  WORKS(sandbox_runtime_new(NULL, NULL, &runtime, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, NULL, &box, &err)), SAYS("options_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, doc, NULL, &err)), SAYS("out");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_named_box(runtime, NULL, doc, &box, &err)), SAYS("name");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_named_box(runtime, "n", NULL, &box, &err)), SAYS("options_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_named_box(runtime, "n", doc, NULL, &err)), SAYS("out");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get(runtime, NULL, &box, &err)), SAYS("id_or_name");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get(runtime, "n", NULL, &err)), SAYS("out");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_remove(runtime, NULL, 1, &err)), SAYS("id_or_name");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get_info(runtime, NULL, &json, &err)), SAYS("id_or_name");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get_info(runtime, "n", NULL, &err)), SAYS("out_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_list_info(runtime, NULL, &err)), SAYS("out_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_metrics(runtime, NULL, &err)), SAYS("out_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_shutdown(runtime, -2, &err)), SAYS("timeout_seconds");

  /* A runtime that can't be made sets the out parameter to NULL. */
  FAILS(SANDBOX_CONFIG, sandbox_runtime_new("", NULL, &no_runtime, &err)), SAYS("home_dir");
  CHECK(no_runtime == NULL);
  FAILS(SANDBOX_CONFIG, sandbox_runtime_new(NULL, "{}", &no_runtime, &err)), SAYS("registries");
  FAILS(SANDBOX_CONFIG, sandbox_runtime_new(NULL, "", &no_runtime, &err)), SAYS("registries");
  FAILS(SANDBOX_CONFIG, sandbox_runtime_new(NULL, "[\"https://h\"]", &no_runtime, &err)), SAYS("[0].host");
  sandbox_runtime_free(runtime);
  return 0;
}
