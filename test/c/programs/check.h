/* What the test programs share: checks, and a box to try things on. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox.h"

#define CHECK(condition) ((condition) ? (void)0 : not_so(__FILE__, __LINE__, #condition))

static inline void not_so(const char *file, int line, const char *condition) {
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
  exit(1);
}

/* FAILS(code, call): the call, which ends in &err, fails with that code and says why. */
#define FAILS(want, call) expect(__FILE__, __LINE__, #call, want, call)
#define WORKS(call) expect(__FILE__, __LINE__, #call, SANDBOX_OK, call)

/* The error struct of all calls, and the last message. Each program is one file. */
static CSandboxError err;
static char last_message[4096];

static inline void expect(const char *file, int line, const char *call, SandboxErrorCode want,
                          SandboxErrorCode got) {
  int filled = want == SANDBOX_OK ? err.message == NULL
                                  : err.code == want && err.message && err.message[0];
  if (got != want || !filled) {
    fprintf(stderr, "%s:%d: %s\n  gave %d (%d, %s), want %d\n", file, line, call, (int)got,
            (int)err.code, err.message ? err.message : "no message", (int)want);
    exit(1);
  }
  snprintf(last_message, sizeof last_message, "%s", err.message ? err.message : "");
  sandbox_error_free(&err);
}

/* SAYS(text): the message of the last failure contains text. */
#define SAYS(text) said(__FILE__, __LINE__, text)

static inline void said(const char *file, int line, const char *text) {
  if (!strstr(last_message, text)) {
    fprintf(stderr, "%s:%d: \"%s\" does not say \"%s\"\n", file, line, last_message, text);
    exit(1);
  }
}

/* The box options document of the directory ROOTFS, with more members behind it. */
static inline const char *options_with(const char *more) {
  static char doc[8192];
  const char *rootfs = getenv("ROOTFS");
  snprintf(doc, sizeof doc,
           "{\"rootfs\":{\"RootfsPath\":\"%s\"},\"env\":[[\"COLOUR\",\"blue\"]],\"volumes\":[],"
           "\"network\":\"Isolated\",\"ports\":[],\"cpus\":1,\"memory_mib\":128%s}",
           rootfs ? rootfs : "/", more);
  return doc;
}

/* The URL of the server that the program runs on, or NULL for the home. */
static inline const char *server(void) { return getenv("SERVER"); }

static inline CSandboxRuntime *new_runtime(void) {
  CSandboxRuntime *runtime = NULL;
  if (server())
    WORKS(sandbox_runtime_new_remote(server(), NULL, NULL, &runtime, &err));
  else
    WORKS(sandbox_runtime_new(NULL, NULL, &runtime, &err));
  CHECK(runtime);
  return runtime;
}

static inline CBoxHandle *new_box(CSandboxRuntime *runtime) {
  CBoxHandle *box = NULL;
  WORKS(sandbox_create_box(runtime, options_with(""), &box, &err));
  CHECK(box);
  return box;
}

/* Output that a callback collects; begin with {0}, end with free(.text). */
struct text {
  char *text;
  size_t length;
};

static inline void collect(const char *piece, int is_stderr, void *to) {
  struct text *t = (struct text *)to + is_stderr; /* two of them: standard output, standard error */
  size_t n = strlen(piece);
  t->text = (char *)realloc(t->text, t->length + n + 1);
  CHECK(t->text);
  memcpy(t->text + t->length, piece, n + 1);
  t->length += n;
}

#endif
