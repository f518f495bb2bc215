/*
 * The functions that take a callback. They are C so that user_data never
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

SandboxErrorCode sandbox_copy_in(CBoxHandle *box, const char *host_path, const char *box_path,
                                 const char *user, SandboxProgressCallback callback,
                                 void *user_data, CSandboxError *err) {
  progress to = {callback, user_data};
  return copy_in(box, host_path, box_path, user, &to, err);
}

SandboxErrorCode sandbox_copy_out(CBoxHandle *box, const char *box_path, const char *host_path,
                                  const char *user, SandboxProgressCallback callback,
                                  void *user_data, CSandboxError *err) {
  progress to = {callback, user_data};
  return copy_out(box, box_path, host_path, user, &to, err);
}

SandboxErrorCode sandbox_image_pull(CSandboxRuntime *runtime, const char *reference,
                                    SandboxProgressCallback callback, void *user_data,
                                    char **out_json, CSandboxError *err) {
  progress to = {callback, user_data};
  return image_pull(runtime, reference, &to, out_json, err);
}

SandboxErrorCode sandbox_image_import(CSandboxRuntime *runtime, const char *name,
                                      const char *source, SandboxProgressCallback callback,
                                      void *user_data, char **out_json, CSandboxError *err) {
  progress to = {callback, user_data};
  return image_import(runtime, name, source, &to, out_json, err);
}

SandboxErrorCode sandbox_image_export(CSandboxRuntime *runtime, const char *reference,
                                      const char *path, const char *compression,
                                      SandboxProgressCallback callback, void *user_data,
                                      CSandboxError *err) {
  progress to = {callback, user_data};
  return image_export(runtime, reference, path, compression, &to, err);
}

SandboxErrorCode sandbox_image_push(CSandboxRuntime *runtime, const char *reference, const char *as,
                                    const char *compression, SandboxProgressCallback callback,
                                    void *user_data, char **out_json, CSandboxError *err) {
  progress to = {callback, user_data};
  return image_push(runtime, reference, as, compression, &to, out_json, err);
}

void call_progress(const progress *to, const SandboxProgress *step) {
  to->callback(step, to->user_data);
}
