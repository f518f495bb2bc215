/* What the Go and the C files of the library share. */
#ifndef GLUE_H
#define GLUE_H

#include "sandbox.h"

/* Go has no const: with these names, cgo uses the header's own types. */
typedef const char cchar;
typedef const char *const cstrings;
typedef const void cvoid;
typedef const SandboxCommand ccommand;
typedef const SandboxTerminal cterminal;

/* Where a command's output goes. See callbacks.c. */
typedef struct output {
  SandboxOutputCallback callback;
  void *user_data;
} output;

void call_output(const output *to, const char *text, int is_stderr);

/* Who is told how far a call has come. See callbacks.c. */
typedef struct progress {
  SandboxProgressCallback callback;
  void *user_data;
} progress;

void call_progress(const progress *to, const SandboxProgress *step);

/* How many released handles are remembered, so that a call on one is refused. */
#define RELEASED_HANDLES (1 << 16)

/* Keeps the address of a released handle, and returns the oldest one when there are more than that, to be
 * freed; else NULL. Calls must not overlap. */
void *keep_released(void *address);

/* Where the search for the programs begins: the file that this library was loaded from, or NULL. */
const char *library_file(void);

#endif
