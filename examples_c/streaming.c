/*
 * Output as it comes: the callback gets each piece while the command runs, on
 * this thread, with the pointer that it was given.
 */
#include "common.h"

struct lines {
  int out, err;
};

static void count(const char *text, int is_stderr, void *user_data) {
  struct lines *lines = user_data;
  for (; *text; text++)
    if (*text == '\n')
      ++*(is_stderr ? &lines->err : &lines->out);
}

int main(int argc, char **argv) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  struct lines lines = {0, 0};
  int exit_code = 0;

  must(sandbox_runtime_new(NULL, NULL, &runtime, &err), &err);
  must(sandbox_create_box(runtime, options_from(argc, argv, "true"), &box, &err), &err);

  SandboxCommand command = {0};
  command.command = "sh";
  command.args_json = "[\"-c\", \"for i in $(seq $LINES); do echo $i; done; echo done >&2\"]";
  command.env_json = "[[\"LINES\", \"1000\"]]";
  command.workdir = "/tmp";
  command.timeout_secs = 30;
  must(sandbox_execute_cmd(box, &command, count, &lines, &exit_code, &err), &err);

  printf("%d lines on stdout, %d on stderr, exit code %d\n", lines.out, lines.err, exit_code);
  sandbox_box_free(box);
  sandbox_runtime_free(runtime);
  return 0;
}
