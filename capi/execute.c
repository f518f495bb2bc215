/*
 * The two functions that take a callback. They are C so that user_data never
 * becomes a Go pointer: it may be any value, such as a small number, and Go
 * ends the process when it finds one of those where a pointer should be.
 */
#include "_cgo_export.h"

SandboxErrorCode sandbox_execute_cmd(CBoxHandle *box, const SandboxCommand *cmd,
                                     SandboxOutputCallback callback, void *user_data,
                                     int *out_exit_code, CSandboxError *err) {
  output to = {callback, user_data};
  return execute(box, (SandboxCommand *)cmd, &to, out_exit_code, err);
}

SandboxErrorCode sandbox_execute(CBoxHandle *box, const char *command, const char *args_json,
                                 SandboxOutputCallback callback, void *user_data,
                                 int *out_exit_code, CSandboxError *err) {
  SandboxCommand cmd = {command, args_json, 0, 0, 0, 0};
  return sandbox_execute_cmd(box, &cmd, callback, user_data, out_exit_code, err);
}

void call_output(const output *to, const char *text, int is_stderr) {
  to->callback(text, is_stderr, to->user_data);
}
