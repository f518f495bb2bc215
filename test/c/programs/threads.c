/* 200 boxes (40 on a server), made, used and removed by 8 threads that share a runtime. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 8 };
#define BOXES (server() ? 5 : 25)

static CSandboxRuntime *runtime;
static char doc[8192];

/* Each thread has its own error: the one of check.h belongs to main. */
static void *work(void *number) {
  for (int i = 0; i < BOXES; i++) {
    CSandboxError e = {SANDBOX_OK, NULL};
    CBoxHandle *box = NULL;
    struct text out[2] = {{0}, {0}};
    char args[64], want[32];
    int exit_code = 77;
    SandboxErrorCode code = sandbox_create_box(runtime, doc, &box, &e);
    if (code == SANDBOX_OK) {
      snprintf(want, sizeof want, "%d of %d\n", i, *(int *)number);
      snprintf(args, sizeof args, "[\"%d of %d\"]", i, *(int *)number);
      code = sandbox_execute(box, "echo", args, collect, out, &exit_code, &e);
    }
    if (code == SANDBOX_OK) {
      CHECK(exit_code == 0 && strcmp(out[0].text, want) == 0);
      char *id = sandbox_box_id(box);
      code = i % 2 ? sandbox_stop_box(box, &e) : sandbox_remove(runtime, id, 1, &e);
      sandbox_free_string(id);
    }
    if (code != SANDBOX_OK) {
      fprintf(stderr, "box %s: %d, %s\n", want, (int)code, e.message);
      exit(1);
    }
    free(out[0].text);
    sandbox_box_free(box);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  char *json = NULL;
  runtime = new_runtime();
  snprintf(doc, sizeof doc, "%s", options_with(""));
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
  WORKS(sandbox_runtime_metrics(runtime, &json, &err));
  char counts[160];
  snprintf(counts, sizeof counts, "\"boxes_created_total\":%d,\"boxes_failed_total\":0,\"num_running_boxes\":0,"
           "\"total_commands_executed\":%d,\"total_exec_errors\":0", THREADS * BOXES, THREADS * BOXES);
  CHECK(strstr(json, counts));
  sandbox_free_string(json);
  WORKS(sandbox_list_info(runtime, &json, &err));
  CHECK(strcmp(json, "[]") == 0);
  sandbox_free_string(json);
  sandbox_runtime_free(runtime);
  return 0;
}
