/*
 * Images: the directory argv[1] becomes an image of the home, with its progress,
 * a box runs from it, and the image is removed again.
 */
#include "common.h"

static void show(const SandboxProgress *progress, void *user_data) {
  (void)user_data;
  if (strcmp(progress->stage, "done") == 0)
    printf("layer %d of %d is there\n", progress->part, progress->parts);
}

int main(int argc, char **argv) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  int exit_code = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }

  must(sandbox_runtime_new(NULL, NULL, &runtime, &err), &err);
  must(sandbox_image_import(runtime, "mine:1", argv[1], show, NULL, NULL, &err), &err);
  must(sandbox_create_box(runtime,
                          "{\"rootfs\": {\"Image\": \"mine:1\"}, \"env\": [], \"volumes\": [],"
                          " \"network\": \"None\", \"ports\": [], \"cpus\": 1, \"memory_mib\": 128}",
                          &box, &err), &err);
  must(sandbox_execute(box, "true", NULL, NULL, NULL, &exit_code, &err), &err);
  printf("exit code %d\n", exit_code);

  if (sandbox_image_remove(runtime, "mine:1", 0, &err) == SANDBOX_INVALID_STATE)
    printf("a box stands on it\n");
  sandbox_error_free(&err);
  must(sandbox_image_remove(runtime, "mine:1", 1, &err), &err);
  sandbox_box_free(box);
  sandbox_runtime_free(runtime);
  return 0;
}
