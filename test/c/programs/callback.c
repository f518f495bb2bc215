/* Callbacks: on which thread, and what they may do. */
#include <pthread.h>

#include "check.h"

struct state {
  CSandboxRuntime *runtime;
  CBoxHandle *box;
  pthread_t caller;
  int calls;
};

static void on_the_callers_thread(const char *text, int is_stderr, void *to) {
  struct state *s = (struct state *)to;
  (void)text, (void)is_stderr;
  CHECK(pthread_equal(pthread_self(), s->caller));
  s->calls++;
}

static void *run_lines(void *to) {
  struct state *s = (struct state *)to;
  int exit_code = 77;
  s->caller = pthread_self();
  CBoxHandle *box = NULL;
  char *id = sandbox_box_id(s->box);
  WORKS(sandbox_get(s->runtime, id, &box, &err));
  WORKS(sandbox_execute(box, "sh", "[\"-c\",\"for i in 1 2 3 4 5; do echo $i; echo $i >&2; sleep 0.01; done\"]",
                        on_the_callers_thread, s, &exit_code, &err));
  sandbox_box_free(box);
  sandbox_free_string(id);
  CHECK(exit_code == 0 && s->calls >= 2);
  return NULL;
}

/* Uses the library on the box whose command is calling. */
static void call_back_in(const char *text, int is_stderr, void *to) {
  struct state *s = (struct state *)to;
  char *json = NULL;
  int exit_code = 77;
  (void)text, (void)is_stderr;
  WORKS(sandbox_box_info(s->box, &json, &err));
  sandbox_free_string(json);
  if (++s->calls <= 3) /* and nested */
    WORKS(sandbox_execute(s->box, "echo", "[\"deeper\"]", call_back_in, s, &exit_code, &err));
}

/* Has the command go on, which waits so that its output comes in two calls. */
static void release_own_handle(const char *text, int is_stderr, void *to) {
  struct state *s = (struct state *)to;
  int exit_code = 77;
  (void)text, (void)is_stderr;
  if (s->calls++ == 0)
    WORKS(sandbox_execute(s->box, "touch", "[\"/go\"]", NULL, NULL, &exit_code, &err));
  sandbox_box_free(s->box);
}

static void release_own_runtime(const char *text, int is_stderr, void *to) {
  struct state *s = (struct state *)to;
  (void)text, (void)is_stderr;
  sandbox_runtime_free(s->runtime);
  s->calls++;
}

static void stop_own_box(const char *text, int is_stderr, void *to) {
  struct state *s = (struct state *)to;
  (void)text, (void)is_stderr;
  if (s->calls++ == 0)
    WORKS(sandbox_stop_box(s->box, &err));
}

static void remove_own_box(const char *text, int is_stderr, void *to) {
  struct state *s = (struct state *)to;
  (void)text, (void)is_stderr;
  char *id = sandbox_box_id(s->box);
  if (s->calls++ == 0)
    WORKS(sandbox_remove(s->runtime, id, 1, &err));
  sandbox_free_string(id);
}

static void *stop(void *to) {
  struct state *s = (struct state *)to;
  CBoxHandle *box = NULL;
  CHECK(sandbox_get(s->runtime, "busy", &box, NULL) == SANDBOX_OK);
  CHECK(sandbox_stop_box(box, NULL) == SANDBOX_OK);
  sandbox_box_free(box);
  return NULL;
}

/* Stops the box from a second thread, once its command has begun. */
static void begin_stop(const char *text, int is_stderr, void *to) {
  (void)text, (void)is_stderr;
  struct state *s = (struct state *)to;
  if (s->calls++ == 0)
    CHECK(pthread_create(&s->caller, NULL, stop, s) == 0);
}

int main(void) {
  struct state s = {new_runtime(), NULL, pthread_self(), 0};
  int exit_code = 77;
  pthread_t thread;
  s.box = new_box(s.runtime);

  run_lines(&s);
  s.calls = 0;
  CHECK(pthread_create(&thread, NULL, run_lines, &s) == 0);
  CHECK(pthread_join(thread, NULL) == 0);

  s.calls = 0;
  WORKS(sandbox_execute(s.box, "echo", "[\"x\"]", call_back_in, &s, &exit_code, &err));
  CHECK(s.calls == 4);

  /* The handle dies in the callback; the call goes on to its end. */
  s.calls = 0;
  WORKS(sandbox_execute(s.box, "sh", "[\"-c\",\"echo a; until [ -e /go ]; do sleep 0.01; done; echo b; exit 5\"]",
                        release_own_handle, &s, &exit_code, &err));
  CHECK(exit_code == 5 && s.calls == 2);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute(s.box, "true", NULL, NULL, NULL, &exit_code, &err));

  s.box = new_box(s.runtime);
  s.calls = 0, exit_code = 77;
  FAILS(SANDBOX_CANCELED, sandbox_execute(s.box, "sh", "[\"-c\",\"echo a; sleep 1000\"]", stop_own_box, &s, &exit_code, &err));
  CHECK(exit_code == 77 && s.calls == 1);
  sandbox_box_free(s.box);

  s.box = new_box(s.runtime);
  s.calls = 0;
  FAILS(SANDBOX_CANCELED, sandbox_execute(s.box, "sh", "[\"-c\",\"echo a; sleep 1000\"]", remove_own_box, &s, &exit_code, &err));
  CHECK(exit_code == 77 && s.calls == 1);
  sandbox_box_free(s.box);

  WORKS(sandbox_create_named_box(s.runtime, "busy", options_with(""), &s.box, &err));
  s.calls = 0;
  FAILS(SANDBOX_CANCELED, sandbox_execute(s.box, "sh", "[\"-c\",\"echo a; sleep 1000\"]", begin_stop, &s, &exit_code, &err));
  CHECK(pthread_join(s.caller, NULL) == 0);
  CHECK(exit_code == 77);

  s.box = new_box(s.runtime);
  s.calls = 0;
  FAILS(SANDBOX_CANCELED, sandbox_execute(s.box, "sh", "[\"-c\",\"echo a; sleep 1000\"]", release_own_runtime, &s, &exit_code, &err));
  CHECK(s.calls == 1);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute(s.box, "true", NULL, NULL, NULL, &exit_code, &err));
  return 0;
}
