/* Handles that were released, twice released, or belong to a released runtime. */
#include "check.h"

static void dead_box(CBoxHandle *box) {
  char *json = (char *)&err;
  int exit_code = 77;
  SandboxCommand cmd = {"true", NULL, NULL, NULL, NULL, 0};
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_start_box(box, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_stop_box(box, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_pause_box(box, 0, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_resume_box(box, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_update_box(box, "{}", &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_info(box, &json, &err)), SAYS("box");
  CHECK(json == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_metrics(box, &json, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute(box, "true", NULL, NULL, NULL, &exit_code, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute_cmd(box, &cmd, NULL, NULL, &exit_code, &err)), SAYS("box");
  CHECK(exit_code == 77);
  CHECK(sandbox_box_id(box) == NULL);
  sandbox_box_free(box);
  sandbox_box_free(box);
}

static void dead_runtime(CSandboxRuntime *runtime) {
  CBoxHandle *box = (CBoxHandle *)&err;
  char *json = (char *)&err;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, options_with(""), &box, &err)), SAYS("runtime");
  CHECK(box == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_named_box(runtime, "n", options_with(""), &box, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get(runtime, "n", &box, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_remove(runtime, "n", 1, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_list_info(runtime, &json, &err));
  CHECK(json == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_get_info(runtime, "n", &json, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_metrics(runtime, &json, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_shutdown(runtime, 1, &err));
  sandbox_runtime_free(runtime);
  sandbox_runtime_free(runtime);
}

static void simple(void) {
  CSandboxSimple *s = (CSandboxSimple *)&err;
  CSandboxExecResult *result = (CSandboxExecResult *)&err;
  FAILS(SANDBOX_IMAGE, sandbox_simple_new("127.0.0.1:1/no/such:image", 0, 0, &s, &err)), SAYS("127.0.0.1:1/no/such:image");
  CHECK(s == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_new("default", 100000, 0, &s, &err)), SAYS("cpus");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_new("default", 0, 1, &s, &err)), SAYS("memory_mib");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run((CSandboxSimple *)1, "true", NULL, 0, &result, &err));
  CHECK(result == NULL);
  sandbox_simple_free((CSandboxSimple *)1);
}

int main(void) {
  /* A pointer that never was a handle. */
  dead_box((CBoxHandle *)1);
  dead_box((CBoxHandle *)&err);
  dead_runtime((CSandboxRuntime *)4095);
  dead_runtime((CSandboxRuntime *)&err);

  CSandboxRuntime *runtime = new_runtime(), *other = new_runtime();
  dead_box((CBoxHandle *)runtime); /* the wrong kind is not released by it */
  CBoxHandle *first = new_box(runtime), *second = NULL;
  dead_runtime((CSandboxRuntime *)first);
  char *id = sandbox_box_id(first);
  WORKS(sandbox_get(other, id, &second, &err));
  CHECK(second && second != first);

  /* Releasing one handle again must not release another one. */
  CBoxHandle *third = NULL;
  WORKS(sandbox_get(runtime, id, &third, &err));
  sandbox_box_free(third);
  CBoxHandle *again[64];
  for (int i = 0; i < 64; i++)
    WORKS(sandbox_get(runtime, id, &again[i], &err));
  dead_box(third);
  for (int i = 0; i < 64; i++) {
    char *same = sandbox_box_id(again[i]);
    CHECK(same && strcmp(same, id) == 0);
    sandbox_free_string(same);
    if (i % 2)
      sandbox_box_free(again[i]);
  }

  /* A runtime takes all its handles with it, and its auto_remove boxes. */
  sandbox_runtime_free(runtime);
  dead_runtime(runtime);
  dead_box(first);
  for (int i = 0; i < 64; i++)
    dead_box(again[i]);
  char *json = NULL;
  FAILS(SANDBOX_NOT_FOUND, sandbox_box_info(second, &json, &err)), SAYS(id);
  sandbox_runtime_free(other);
  dead_box(second);
  sandbox_free_string(id);

  simple();
  sandbox_error_free(&err);
  sandbox_error_free(&err);
  return 0;
}
