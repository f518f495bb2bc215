/* Calls of libsandbox from a script, for the conformance cases. The arguments are
   words; "+" ends a call. NULL stands for NULL. A call works on the box that the
   last create, named or get made. For each call come, behind 0x1f each: the code,
   the message or the result, and of a command its exit code, stdout and stderr;
   then 0x1e. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox.h"

static CSandboxRuntime *runtime;
static CBoxHandle *box;
static CSandboxError err;

struct output {
  char *text[2];
  size_t length[2];
};

static void collect(const char *piece, int is_stderr, void *to) {
  struct output *o = to;
  int i = is_stderr ? 1 : 0;
  size_t n = strlen(piece);
  o->text[i] = realloc(o->text[i], o->length[i] + n + 1);
  if (!o->text[i]) abort();
  memcpy(o->text[i] + o->length[i], piece, n + 1);
  o->length[i] += n;
}

/* tell ends a call that gives a string, or nothing. */
static void tell(SandboxErrorCode code, char *result) {
  printf("%d\x1f%s\x1e", (int)code, code == SANDBOX_OK ? (result ? result : "") : err.message ? err.message : "");
  if (result) sandbox_free_string(result);
  sandbox_error_free(&err);
}

static void tell_output(SandboxErrorCode code, int exit_code, struct output *o) {
  printf("%d\x1f%s\x1f%d\x1f%s\x1f%s\x1e", (int)code, err.message ? err.message : "", exit_code,
         o->text[0] ? o->text[0] : "", o->text[1] ? o->text[1] : "");
  free(o->text[0]);
  free(o->text[1]);
  sandbox_error_free(&err);
}

static void simple(int argc, char **argv) {
  CSandboxSimple *s = NULL;
  CSandboxExecResult *r = NULL;
  SandboxErrorCode code = sandbox_simple_new(argv[0], atoi(argv[1]), atoi(argv[2]), &s, &err);
  if (code == SANDBOX_OK) code = sandbox_simple_run(s, argv[3], (const char *const *)argv + 4, argc - 4, &r, &err);
  printf("%d\x1f%s\x1f%d\x1f%s\x1f%s\x1e", (int)code, err.message ? err.message : "", r ? r->exit_code : -1000,
         r ? r->stdout_text : "", r ? r->stderr_text : "");
  sandbox_result_free(r);
  sandbox_simple_free(s);
  sandbox_error_free(&err);
}

static void execute(char **argv) {
  struct output o = {{NULL, NULL}, {0, 0}};
  SandboxCommand c = {argv[0], argv[1], argv[2], argv[3], argv[4], argv[5] ? atof(argv[5]) : 0};
  int exit_code = -1000;
  SandboxErrorCode code = sandbox_execute_cmd(box, &c, collect, &o, &exit_code, &err);
  tell_output(code, exit_code, &o);
}

static CSandboxWatch *watch;

static void file_call(const char *f, int argc, char **a) {
  char *out = NULL;
  SandboxErrorCode code = SANDBOX_INTERNAL;
  if (!strcmp(f, "stat") && argc == 2)
    code = sandbox_file_stat(box, a[0], a[1], &out, &err);
  else if (!strcmp(f, "list") && argc == 5)
    code = sandbox_file_list(box, a[0], a[1] ? atoi(a[1]) : 0, a[2] ? atoi(a[2]) : 0, a[3], a[4], &out, &err);
  else if (!strcmp(f, "make_dir") && argc == 3)
    code = sandbox_file_make_dir(box, a[0], a[1] ? (int)strtol(a[1], NULL, 8) : -1, a[2], &out, &err);
  else if (!strcmp(f, "move") && argc == 3)
    code = sandbox_file_move(box, a[0], a[1], a[2], &out, &err);
  else if (!strcmp(f, "remove") && argc == 3)
    code = sandbox_file_remove(box, a[0], atoi(a[1]), a[2], &out, &err);
  tell(code, out);
}

/* code runs code and tells all of its events, in an array. */
static void code(const char *document) {
  CSandboxCodeRun *run = NULL;
  SandboxErrorCode code = sandbox_code_start(box, document, &run, &err);
  if (code != SANDBOX_OK) {
    tell(code, NULL);
    return;
  }
  printf("0\x1f[");
  char *event = NULL;
  for (int n = 0; (code = sandbox_code_read(run, 60, &event, &err)) == SANDBOX_OK; n++) {
    printf("%s%s", n ? "," : "", event);
    sandbox_free_string(event);
  }
  printf("]\x1e");
  sandbox_error_free(&err);
  sandbox_code_free(run);
}

/* build builds an image and tells all events, in an array. */
static void build(const char *document) {
  CSandboxBuild *begun = NULL;
  char *event = NULL, *all = NULL;
  size_t length = 0;
  SandboxErrorCode code = sandbox_build_start(runtime, document, &begun, &err);
  FILE *out = open_memstream(&all, &length);
  for (int n = 0; code == SANDBOX_OK && sandbox_build_read(begun, 60, &event, NULL) == SANDBOX_OK; n++) {
    fprintf(out, "%s%s", n ? "," : "[", event);
    sandbox_free_string(event);
  }
  fputs("]", out);
  fclose(out);
  if (code == SANDBOX_OK) code = sandbox_build_wait(begun, NULL, &err);
  printf("%d\x1f%s\x1e", (int)code, code == SANDBOX_OK ? all : err.message);
  sandbox_error_free(&err);
  sandbox_build_free(begun);
  free(all);
}

static void context_call(const char *f, int argc, char **a) {
  char *out = NULL;
  SandboxErrorCode code = SANDBOX_INTERNAL;
  if (!strcmp(f, "create") && argc == 1)
    code = sandbox_context_create(box, a[0], &out, &err);
  else if (!strcmp(f, "list") && argc == 0)
    code = sandbox_context_list(box, &out, &err);
  else if (!strcmp(f, "interrupt") && argc == 1)
    code = sandbox_context_interrupt(box, a[0], &out, &err);
  else if (!strcmp(f, "restart") && argc == 1)
    code = sandbox_context_restart(box, a[0], &out, &err);
  else if (!strcmp(f, "remove") && argc == 1)
    code = sandbox_context_remove(box, a[0], &err);
  tell(code, out);
}

static void snapshot_call(const char *f, int argc, char **a) {
  char *out = NULL;
  SandboxErrorCode code = SANDBOX_INTERNAL;
  if (!strcmp(f, "take") && argc == 1)
    code = sandbox_box_snapshot(box, a[0], &out, &err);
  else if (!strcmp(f, "clone") && argc == 1)
    code = sandbox_box_clone(box, a[0], &out, &err);
  else if (!strcmp(f, "rollback") && argc == 1)
    code = sandbox_box_rollback(box, a[0], &err);
  else if (!strcmp(f, "diff") && argc == 3)
    code = sandbox_box_diff(box, a[0], a[1] ? atoi(a[1]) : 0, a[2], &out, &err);
  else if (!strcmp(f, "list") && argc == 1)
    code = sandbox_snapshots(runtime, a[0], &out, &err);
  tell(code, out);
}

static int call(const char *f, int argc, char **a) {
  char *out = NULL;
  if (!strcmp(f, "version")) {
    printf("0\x1f%s\x1e", sandbox_version());
  } else if (!strcmp(f, "runtime") && argc == 2) {
    if (runtime) sandbox_runtime_free(runtime);
    runtime = NULL;
    tell(sandbox_runtime_new(a[0], a[1], &runtime, &err), NULL);
  } else if (!strcmp(f, "remote") && argc == 3) {
    tell(sandbox_runtime_new_remote(a[0], a[1], a[2], &runtime, &err), NULL);
  } else if (!strcmp(f, "create") && argc == 1) {
    tell(sandbox_create_box(runtime, a[0], &box, &err), NULL);
  } else if (!strcmp(f, "named") && argc == 2) {
    tell(sandbox_create_named_box(runtime, a[0], a[1], &box, &err), NULL);
  } else if (!strcmp(f, "get") && argc == 1) {
    tell(sandbox_get(runtime, a[0], &box, &err), NULL);
  } else if (!strcmp(f, "start")) {
    tell(sandbox_start_box(box, &err), NULL);
  } else if (!strcmp(f, "stop")) {
    tell(sandbox_stop_box(box, &err), NULL);
  } else if (!strcmp(f, "pause") && argc == 1) {
    tell(sandbox_pause_box(box, atoi(a[0]), &err), NULL);
  } else if (!strcmp(f, "resume")) {
    tell(sandbox_resume_box(box, &err), NULL);
  } else if (!strcmp(f, "update") && argc == 1) {
    tell(sandbox_update_box(box, a[0], &err), NULL);
  } else if (!strcmp(f, "remove") && argc == 2) {
    tell(sandbox_remove(runtime, a[0], atoi(a[1]), &err), NULL);
  } else if (!strcmp(f, "list")) {
    SandboxErrorCode code = sandbox_list_info(runtime, &out, &err);
    tell(code, out);
  } else if (!strcmp(f, "info") && argc == 1) {
    SandboxErrorCode code = sandbox_get_info(runtime, a[0], &out, &err);
    tell(code, out);
  } else if (!strcmp(f, "box_info")) {
    SandboxErrorCode code = sandbox_box_info(box, &out, &err);
    tell(code, out);
  } else if (!strcmp(f, "box_metrics")) {
    SandboxErrorCode code = sandbox_box_metrics(box, &out, &err);
    tell(code, out);
  } else if (!strcmp(f, "watch_start") && argc == 3) {
    tell(sandbox_watch_start(box, a[0], atoi(a[1]), a[2], &watch, &err), NULL);
  } else if (!strcmp(f, "watch_read") && argc == 1) {
    SandboxErrorCode code = sandbox_watch_read(watch, atof(a[0]), &out, &err);
    tell(code, out);
  } else if (!strcmp(f, "code") && argc == 1) {
    code(a[0]);
  } else if (!strcmp(f, "build") && argc == 1) {
    build(a[0]);
  } else if (!strncmp(f, "context_", 8)) {
    context_call(f + 8, argc, a);
  } else if (!strncmp(f, "snapshot_", 9)) {
    snapshot_call(f + 9, argc, a);
  } else if (!strncmp(f, "file_", 5)) {
    file_call(f + 5, argc, a);
  } else if (!strcmp(f, "metrics")) {
    SandboxErrorCode code = sandbox_runtime_metrics(runtime, &out, &err);
    tell(code, out);
  } else if (!strcmp(f, "id")) {
    tell(SANDBOX_OK, sandbox_box_id(box));
  } else if (!strcmp(f, "execute") && argc == 6) {
    execute(a);
  } else if (!strcmp(f, "simple") && argc >= 4) {
    simple(argc, a);
  } else if (!strcmp(f, "shutdown") && argc == 1) {
    tell(sandbox_runtime_shutdown(runtime, atoi(a[0]), &err), NULL);
  } else if (!strcmp(f, "free_box")) {
    sandbox_box_free(box);
    tell(SANDBOX_OK, NULL);
  } else if (!strcmp(f, "free_runtime")) {
    sandbox_runtime_free(runtime);
    tell(SANDBOX_OK, NULL);
  } else if (!strcmp(f, "free_nulls")) {
    sandbox_runtime_free(NULL);
    sandbox_box_free(NULL);
    sandbox_simple_free(NULL);
    sandbox_result_free(NULL);
    sandbox_free_string(NULL);
    sandbox_error_free(NULL);
    tell(SANDBOX_OK, NULL);
  } else {
    return 0;
  }
  return 1;
}

int main(int argc, char **argv) {
  int i = 1;
  while (i < argc) {
    char *words[64] = {NULL};
    int n = 0;
    for (; i < argc && strcmp(argv[i], "+"); i++) {
      if (n == 63) return 2;
      words[n++] = strcmp(argv[i], "NULL") ? argv[i] : NULL;
    }
    i++;
    if (n == 0 || !call(words[0], n - 1, words + 1)) {
      fprintf(stderr, "no call %s with %d arguments\n", n ? words[0] : "", n - 1);
      return 2;
    }
  }
  sandbox_box_free(box);
  sandbox_runtime_free(runtime);
  return 0;
}
