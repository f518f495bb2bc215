/* Snapshots of a box, and what is made of them. */
#include "check.h"

static CSandboxRuntime *runtime;

/* The box options document of the image "base:1". */
#define OPTIONS "{\"rootfs\":{\"Image\":\"base:1\"},\"env\":[],\"volumes\":[],\"network\":\"None\",\"ports\":[],\"cpus\":1,\"memory_mib\":64}"

static int sh(CBoxHandle *box, const char *script) {
  char args[512];
  int exit_code = 77;
  snprintf(args, sizeof args, "[\"-c\",\"%s\"]", script);
  WORKS(sandbox_execute(box, "sh", args, NULL, NULL, &exit_code, &err));
  return exit_code;
}

static void shows(char *json, const char *part) {
  if (!json || !strstr(json, part)) {
    fprintf(stderr, "%s does not show %s\n", json ? json : "NULL", part);
    exit(1);
  }
}

static void gives(char *json, const char *part) {
  shows(json, part);
  sandbox_free_string(json);
}

/* A snapshot has the files of its time, a rollback brings them back, and a diff tells them apart. */
static void taken(CBoxHandle *box) {
  char *json = NULL;
  CHECK(sh(box, "echo good >/file; mkdir /d; rm /bin/vi") == 0);
  WORKS(sandbox_box_diff(box, NULL, 0, NULL, &json, &err));
  shows(json, "{\"path\":\"/bin/vi\",\"kind\":\"removed\"}");
  gives(json, "{\"path\":\"/d\",\"kind\":\"added\"}");
  WORKS(sandbox_box_diff(box, NULL, 1, NULL, &json, &err));
  CHECK(!strstr(json, "\"next_page_token\":null"));
  sandbox_free_string(json);

  WORKS(sandbox_box_snapshot(box, "good:1", &json, &err));
  shows(json, "\"name\":\"good:1\"");
  gives(json, "\"paused_ms\":");
  WORKS(sandbox_box_diff(box, "good:1", 0, NULL, &json, &err));
  CHECK(strcmp(json, "{\"changes\":[],\"next_page_token\":null}") == 0);
  sandbox_free_string(json);
  CHECK(sh(box, "echo bad >/file; rmdir /d") == 0);
  WORKS(sandbox_box_rollback(box, "good:1", &err));
  CHECK(sh(box, "[ $(cat /file) = good ] && [ -d /d ]") == 0);

  WORKS(sandbox_snapshots(runtime, NULL, &json, &err));
  gives(json, "\"added_bytes\":");
  WORKS(sandbox_snapshots(runtime, "box_aaaaaaaaaaaaaaaaaaaa", &json, &err));
  CHECK(strcmp(json, "[]") == 0);
  sandbox_free_string(json);
}

/* Clones have the files and the options, and end with the runtime. */
static void clones(CBoxHandle *box) {
  char *json = NULL;
  CBoxHandle *clone = NULL;
  WORKS(sandbox_box_clone(box, "{\"n\":2,\"name_prefix\":\"copy\",\"snapshot\":\"good:1\",\"options\":{\"memory_mib\":96}}", &json, &err));
  shows(json, "\"name\":\"copy-2\"");
  gives(json, "\"memory_mib\":96");
  WORKS(sandbox_get(runtime, "copy-1", &clone, &err));
  CHECK(sh(clone, "[ $(cat /file) = good ]") == 0);
  sandbox_box_free(clone);
  WORKS(sandbox_runtime_metrics(runtime, &json, &err));
  gives(json, "\"boxes_created_total\":3,");
  WORKS(sandbox_box_clone(box, NULL, &json, &err));
  gives(json, "\"memory_mib\":64");
}

static void refused(CBoxHandle *box) {
  char *json = (char *)&err;
  FAILS(SANDBOX_ALREADY_EXISTS, sandbox_box_snapshot(box, "base:1", &json, &err)), SAYS("base:1");
  CHECK(json == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_snapshot(box, "../x", &json, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_rollback(box, NULL, &err)), SAYS("snapshot");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_rollback(box, "base:1", &err)), SAYS("no snapshot");
  FAILS(SANDBOX_NOT_FOUND, sandbox_box_rollback(box, "nothing", &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_clone(box, "{\"n\":0}", &json, &err)), SAYS("n ");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_clone(box, "{", &json, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_diff(box, NULL, -1, NULL, &json, &err)), SAYS("page_size");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_diff(box, NULL, 0, "?", &json, &err)), SAYS("page_token");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_snapshot(box, NULL, NULL, &err)), SAYS("out");

  CBoxHandle *outside = new_box(runtime);
  FAILS(SANDBOX_UNSUPPORTED, sandbox_box_snapshot(outside, NULL, &json, &err)), SAYS("rootfs_path");
  sandbox_box_free(outside);
}

static void series(CBoxHandle *box) {
  char *json = NULL;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_metrics_series(box, "yesterday", NULL, 0, &json, &err)), SAYS("from");
  if (!server()) {
    FAILS(SANDBOX_UNSUPPORTED, sandbox_box_metrics_series(box, NULL, NULL, 0, &json, &err)), SAYS("server");
    return;
  }
  WORKS(sandbox_box_metrics_series(box, "10m", NULL, 60, &json, &err));
  shows(json, "\"step_seconds\":60,\"points\":[");
  sandbox_free_string(json);
  WORKS(sandbox_box_metrics_series(box, NULL, NULL, 0, &json, &err));
  gives(json, "\"points\":[");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_metrics_series(box, "1m", "2m", 0, &json, &err)), SAYS("from");
}

int main(void) {
  CBoxHandle *box = NULL;
  runtime = new_runtime();
  WORKS(sandbox_image_import(runtime, "base:1", getenv("ROOTFS"), NULL, NULL, NULL, &err));
  WORKS(sandbox_create_box(runtime, OPTIONS, &box, &err));
  taken(box);
  clones(box);
  refused(box);
  series(box);
  sandbox_runtime_free(runtime);
  runtime = new_runtime();
  char *json = NULL;
  WORKS(sandbox_list_info(runtime, &json, &err));
  CHECK(strcmp(json, "[]") == 0);
  sandbox_free_string(json);
  sandbox_runtime_free(runtime);
  return 0;
}
