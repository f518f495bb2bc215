/*
 * A conversation with a command: lines go to its input, and its answers are
 * read as bytes while it runs.
 */
#include "common.h"

/* Prints the command's output up to the end of a line, or of the output. */
static void print_line(CSandboxExecution *shell, CSandboxError *err) {
  char piece[4096];
  size_t length;
  do {
    must(sandbox_exec_read(shell, piece, sizeof piece, &length, NULL, err), err);
    fwrite(piece, 1, length, stdout);
  } while (length > 0 && piece[length - 1] != '\n');
}

int main(int argc, char **argv) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = NULL;
  CSandboxExecution *shell = NULL;
  CSandboxError err = {SANDBOX_OK, NULL};
  const char *lines[] = {"echo $((6 * 7))\n", "cd /tmp; pwd\n", "echo it goes; exit 3\n"};
  int exit_code = 0;

  must(sandbox_runtime_new(NULL, NULL, &runtime, &err), &err);
  must(sandbox_create_box(runtime, options_from(argc, argv, "true"), &box, &err), &err);

  SandboxCommand command = {0};
  command.command = "sh";
  must(sandbox_exec_start(box, &command, 1, NULL, &shell, &err), &err);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    must(sandbox_exec_write_stdin(shell, lines[i], strlen(lines[i]), &err), &err);
    print_line(shell, &err);
  }
  must(sandbox_exec_wait(shell, &exit_code, &err), &err);
  printf("exit code %d\n", exit_code);

  sandbox_exec_free(shell);
  sandbox_box_free(box);
  sandbox_runtime_free(runtime);
  return 0;
}
