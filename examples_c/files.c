/*
 * Files: a directory goes into a box, a command works on it, and its result comes
 * back. No program of the box takes part in the copies.
 */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include <unistd.h>

#include "common.h"

static void show(const SandboxProgress *progress, void *user_data) {
  *(long long *)user_data = progress->done;
}

int main(int argc, char **argv) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  long long copied = 0;
  int exit_code = 0;
  char name[] = "result-XXXXXX", line[64] = "";

  must(sandbox_runtime_new(NULL, NULL, &runtime, &err), &err);
  must(sandbox_create_box(runtime, options_from(argc, argv, "true"), &box, &err), &err);

  must(sandbox_copy_in(box, argv[0], "/work/program", NULL, show, &copied, &err), &err);
  must(sandbox_execute(box, "sh", "[\"-c\", \"wc -c < /work/program > /work/size\"]", NULL, NULL, &exit_code, &err), &err);
  close(mkstemp(name));
  must(sandbox_copy_out(box, "/work/size", name, NULL, NULL, NULL, &err), &err);

  FILE *result = fopen(name, "r");
  if (result && fgets(line, sizeof line, result))
    printf("%s\n", atoll(line) == copied ? "the box has all bytes" : "some bytes are missing");
  if (result)
    fclose(result);
  remove(name);
  sandbox_box_free(box);
  sandbox_runtime_free(runtime);
  return exit_code;
}
