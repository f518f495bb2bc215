/* Boxes from create to removal, and what the library reports about them. */
#include "check.h"

static char *info(CBoxHandle *box) {
  char *json = NULL;
  WORKS(sandbox_box_info(box, &json, &err));
  return json;
}

static void shows(CBoxHandle *box, const char *part) {
  char *json = info(box);
  if (!strstr(json, part)) {
    fprintf(stderr, "%s does not show %s\n", json, part);
    exit(1);
  }
  sandbox_free_string(json);
}

static void counts(CSandboxRuntime *runtime, const char *part) {
  char *json = NULL;
  WORKS(sandbox_runtime_metrics(runtime, &json, &err));
  if (!strstr(json, part)) {
    fprintf(stderr, "%s does not count %s\n", json, part);
    exit(1);
  }
  sandbox_free_string(json);
}

static int run(CBoxHandle *box, const char *script) {
  char args[512];
  int exit_code = 77;
  snprintf(args, sizeof args, "[\"-c\",\"%s\"]", script);
  WORKS(sandbox_execute(box, "/bin/sh", args, NULL, NULL, &exit_code, &err));
  return exit_code;
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  CBoxHandle *box = NULL, *same = NULL;
  char *json = NULL;
  int exit_code = 77;

  WORKS(sandbox_list_info(runtime, &json, &err));
  CHECK(strcmp(json, "[]") == 0);
  sandbox_free_string(json);

  /* A box that stays when it stops. */
  WORKS(sandbox_create_named_box(runtime, "keeper", options_with(",\"auto_remove\":false"), &box, &err));
  char *id = sandbox_box_id(box);
  CHECK(strncmp(id, "box_", 4) == 0 && strlen(id) == 24);
  shows(box, "\"name\":\"keeper\"");
  shows(box, "\"status\":\"running\",\"running\":true,\"pid\":");
  shows(box, "\"memory_mib\":128");
  shows(box, "\"env\":{\"COLOUR\":\"blue\"}");
  shows(box, "\"stopped_at\":null");

  CBoxHandle *twice = (CBoxHandle *)&err;
  FAILS(SANDBOX_ALREADY_EXISTS, sandbox_create_named_box(runtime, "keeper", options_with(""), &twice, &err));
  SAYS("keeper");
  CHECK(twice == NULL);

  WORKS(sandbox_list_info(runtime, &json, &err));
  CHECK(strstr(json, id) && !strstr(json, "COLOUR"));
  sandbox_free_string(json);
  WORKS(sandbox_get_info(runtime, "keeper", &json, &err));
  CHECK(strstr(json, id) && strstr(json, "COLOUR"));
  sandbox_free_string(json);
  char prefix[13] = {0};
  memcpy(prefix, id, 12);
  WORKS(sandbox_get(runtime, prefix, &same, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_get_info(runtime, "box_", &json, &err));
  CHECK(json == NULL);

  CHECK(run(box, "exit 3") == 3);
  WORKS(sandbox_box_metrics(box, &json, &err));
  CHECK(strstr(json, "\"commands_executed_total\":1,\"exec_errors_total\":0"));
  CHECK(!strstr(json, "\"network_bytes_sent\":null") && !strstr(json, "\"network_bytes_received\":null"));
  CHECK(!strstr(json, "\"total_create_duration_ms\":null"));
  CHECK(!strstr(json, "\"cpu_percent\":null") && !strstr(json, "\"memory_bytes\":null"));
  sandbox_free_string(json);
  counts(runtime, "\"boxes_created_total\":1,\"boxes_failed_total\":1,\"num_running_boxes\":1,"
                  "\"total_commands_executed\":1,\"total_exec_errors\":0");

  FAILS(SANDBOX_INVALID_STATE, sandbox_resume_box(box, &err));
  WORKS(sandbox_pause_box(box, 0, &err));
  shows(box, "\"status\":\"paused\",\"running\":false,\"pid\":");
  FAILS(SANDBOX_INVALID_STATE, sandbox_pause_box(same, 0, &err)), SAYS("paused");
  FAILS(SANDBOX_INVALID_STATE, sandbox_start_box(same, &err)), SAYS("resume");
  FAILS(SANDBOX_INVALID_STATE, sandbox_execute(same, "true", NULL, NULL, NULL, &exit_code, &err)), SAYS("resume");
  WORKS(sandbox_resume_box(same, &err));
  shows(box, "\"paused_at\":null");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_update_box(box, NULL, &err)), SAYS("update_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_update_box(box, "{\"ttl_seconds\": 0}", &err)), SAYS("ttl_seconds");
  WORKS(sandbox_update_box(box, "{\"ttl_seconds\": 60, \"idle_seconds\": 7, \"on_expiry\": \"pause\"}", &err));
  shows(box, "\"ttl_seconds\":60,\"idle_seconds\":7,\"on_expiry\":\"pause\",\"expires_at\":\"2");
  WORKS(sandbox_update_box(box, "{\"ttl_seconds\": null, \"idle_seconds\": null}", &err));
  shows(box, "\"ttl_seconds\":null,\"idle_seconds\":null,\"on_expiry\":\"pause\",\"expires_at\":null");

  FAILS(SANDBOX_INVALID_STATE, sandbox_start_box(box, &err));
  FAILS(SANDBOX_INVALID_STATE, sandbox_remove(runtime, "keeper", 0, &err));
  WORKS(sandbox_stop_box(box, &err));
  shows(box, "\"status\":\"stopped\",\"running\":false,\"pid\":null");
  FAILS(SANDBOX_INVALID_STATE, sandbox_stop_box(same, &err));
  FAILS(SANDBOX_INVALID_STATE, sandbox_execute(same, "true", NULL, NULL, NULL, &exit_code, &err));
  CHECK(exit_code == 77);
  WORKS(sandbox_start_box(same, &err));
  shows(box, "\"running\":true");
  CHECK(run(box, "exit 0") == 0);
  WORKS(sandbox_remove(runtime, id, 1, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_box_info(same, &json, &err)), SAYS(id);
  FAILS(SANDBOX_NOT_FOUND, sandbox_stop_box(box, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_remove(runtime, id, 1, &err));
  sandbox_box_free(box);
  sandbox_box_free(same);
  sandbox_free_string(id);

  /* A box that is removed when it stops; its handle can still be released. */
  box = new_box(runtime);
  WORKS(sandbox_stop_box(box, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_box_info(box, &json, &err));
  id = sandbox_box_id(box);
  CHECK(id);
  sandbox_free_string(id);
  sandbox_box_free(box);

  /* A handle that is released leaves its box running. */
  WORKS(sandbox_create_named_box(runtime, "left", options_with(""), &box, &err));
  sandbox_box_free(box);
  WORKS(sandbox_get(runtime, "left", &box, &err));
  shows(box, "\"running\":true");

  /* Shutdown stops what this runtime made, and only that. */
  CSandboxRuntime *other = new_runtime();
  CBoxHandle *foreign = new_box(other);
  WORKS(sandbox_runtime_shutdown(runtime, 1, &err));
  WORKS(sandbox_runtime_shutdown(runtime, 0, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_box_info(box, &json, &err));
  FAILS(SANDBOX_STOPPED, sandbox_create_box(runtime, options_with(""), &twice, &err));
  CHECK(twice == NULL);
  shows(foreign, "\"running\":true");

  /* A box without auto_remove outlives its runtime. */
  WORKS(sandbox_create_named_box(other, "survivor", options_with(",\"auto_remove\":false"), &box, &err));
  sandbox_runtime_free(other);
  sandbox_runtime_free(runtime);
  runtime = new_runtime();
  new_box(runtime);
  WORKS(sandbox_runtime_shutdown(runtime, -1, &err)); /* however long it takes */
  sandbox_runtime_free(runtime);
  runtime = new_runtime();
  WORKS(sandbox_get(runtime, "survivor", &box, &err));
  shows(box, "\"running\":true");
  WORKS(sandbox_remove(runtime, "survivor", 1, &err));
  sandbox_runtime_free(runtime);
  return 0;
}
