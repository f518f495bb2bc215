/* Executions: output by pieces and by descriptors, input, signals, terminals, taking over, and what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static CBoxHandle *box;

/* Starts a shell script; flags: with an open input, and on a terminal unless NULL. */
static CSandboxExecution *start(const char *script, int open_stdin, const SandboxTerminal *terminal) {
  static char args[4096];
  CSandboxExecution *x = NULL;
  snprintf(args, sizeof args, "[\"-c\",\"%s\"]", script);
  SandboxCommand cmd = {"sh", args, NULL, NULL, NULL, 0};
  WORKS(sandbox_exec_start(box, &cmd, open_stdin, terminal, &x, &err));
  CHECK(x);
  return x;
}

static int wait_for(CSandboxExecution *x) {
  int exit_code = 77;
  WORKS(sandbox_exec_wait(x, &exit_code, &err));
  return exit_code;
}

/* Reads to the end, in pieces of at most capacity bytes; out[0] is standard output, out[1] standard error. */
static void read_all(CSandboxExecution *x, size_t capacity, struct text out[2]) {
  char *piece = malloc(capacity);
  CHECK(piece);
  memset(out, 0, 2 * sizeof *out);
  for (;;) {
    size_t n = 77;
    SandboxStream stream = SANDBOX_STDIN;
    WORKS(sandbox_exec_read(x, piece, capacity, &n, &stream, &err));
    CHECK(n <= capacity);
    if (n == 0) break;
    CHECK(stream == SANDBOX_STDOUT || stream == SANDBOX_STDERR);
    struct text *to = &out[stream == SANDBOX_STDERR];
    to->text = realloc(to->text, to->length + n + 1);
    CHECK(to->text);
    memcpy(to->text + to->length, piece, n);
    to->length += n;
    to->text[to->length] = 0;
  }
  free(piece);
}

static void done(CSandboxExecution *x, struct text out[2]) {
  free(out[0].text);
  free(out[1].text);
  sandbox_exec_free(x);
}

static void bytes_as_they_are(void) {
  struct text out[2];
  CSandboxExecution *x = start("printf 'a\\\\000b\\\\377'; printf 'err' >&2; exit 3", 0, NULL);
  read_all(x, 2, out);
  CHECK(out[0].length == 4 && memcmp(out[0].text, "a\0b\377", 4) == 0);
  CHECK(out[1].length == 3 && memcmp(out[1].text, "err", 3) == 0);
  CHECK(wait_for(x) == 3 && wait_for(x) == 3);
  done(x, out);

  x = start("head -c 3000000 /dev/zero", 0, NULL);
  read_all(x, 65536, out);
  CHECK(out[0].length == 3000000 && wait_for(x) == 0);
  done(x, out);
}

static void input(void) {
  struct text out[2];
  CSandboxExecution *x = start("cat; echo end", 1, NULL);
  WORKS(sandbox_exec_write_stdin(x, "one\ntwo\0", 8, &err));
  WORKS(sandbox_exec_write_stdin(x, NULL, 0, &err));
  WORKS(sandbox_exec_close_stdin(x, &err));
  WORKS(sandbox_exec_close_stdin(x, &err));
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_write_stdin(x, "x", 1, &err));
  SAYS("closed");
  read_all(x, 100, out);
  CHECK(out[0].length == 12 && memcmp(out[0].text, "one\ntwo\0end\n", 12) == 0);
  done(x, out);

  x = start("exit 3", 1, NULL); /* ends before its input does, and before its output is read */
  for (int running = 1; running;) {
    char *info = NULL;
    WORKS(sandbox_exec_info(x, &info, &err));
    running = strstr(info, "\"status\":\"running\"") != NULL;
    sandbox_free_string(info);
  }
  WORKS(sandbox_exec_close_stdin(x, &err));
  CHECK(wait_for(x) == 3);
  sandbox_exec_free(x);

  x = start("true", 0, NULL);
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_write_stdin(x, "x", 1, &err));
  SAYS("without an open input");
  CHECK(wait_for(x) == 0);
  sandbox_exec_free(x);

  x = start("exec <&-; echo closed; sleep 1000", 1, NULL);
  char closed[7];
  size_t n = 0;
  WORKS(sandbox_exec_read(x, closed, sizeof closed, &n, NULL, &err));
  if (!server()) FAILS(SANDBOX_INVALID_STATE, sandbox_exec_write_stdin(x, "x", 1, &err));
  WORKS(sandbox_exec_kill(x, 0, &err));
  sandbox_exec_free(x);
}

/* Its user polls, reads and writes the descriptors, and never calls sandbox_exec_read. */
static void descriptors(void) {
  CSandboxExecution *x = start("read line; echo \\\"<$line>\\\"", 1, NULL);
  int in = -1, out = -1, end = -1, none = 7;
  WORKS(sandbox_exec_fd(x, SANDBOX_STDIN, &in, &err));
  WORKS(sandbox_exec_fd(x, SANDBOX_STDOUT, &out, &err));
  WORKS(sandbox_exec_fd(x, SANDBOX_EXIT, &end, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_fd(x, (SandboxStream)4, &none, &err));
  CHECK(none == -1);
  char got[64] = "";
  CHECK(read(out, got, sizeof got) == -1 && errno == EAGAIN);
  CHECK(write(in, "hello\n", 6) == 6);
  struct pollfd ready = {out, POLLIN, 0};
  CHECK(poll(&ready, 1, -1) == 1);
  CHECK(read(out, got, sizeof got) == 8 && memcmp(got, "<hello>\n", 8) == 0);
  struct pollfd ended = {end, POLLIN, 0};
  CHECK(poll(&ended, 1, -1) == 1);
  CHECK(wait_for(x) == 0);
  sandbox_exec_free(x);
  CHECK(read(out, got, sizeof got) == -1 && errno == EBADF);

  SandboxTerminal terminal = {0, 0};
  x = start("true", 0, &terminal);
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_fd(x, SANDBOX_STDERR, &none, &err));
  WORKS(sandbox_exec_fd(x, SANDBOX_STDIN, &in, &err));
  CHECK(wait_for(x) == 0);
  sandbox_exec_free(x);
}

/* Its user waits on the descriptors alone, and lets the library read. */
static void waits(void) {
  CSandboxExecution *x = start("echo hi; read line", 1, NULL);
  char got[64] = "";
  size_t n = 0;
  int out = -1;
  WORKS(sandbox_exec_fd(x, SANDBOX_STDOUT, &out, &err));
  struct pollfd ready = {out, POLLIN, 0};
  CHECK(poll(&ready, 1, -1) == 1 && ready.revents & POLLIN);
  WORKS(sandbox_exec_read(x, got, sizeof got, &n, NULL, &err));
  CHECK(n == 3 && memcmp(got, "hi\n", 3) == 0);
  WORKS(sandbox_exec_close_stdin(x, &err));
  CHECK(poll(&ready, 1, -1) == 1 && ready.revents == POLLHUP);
  WORKS(sandbox_exec_read(x, got, sizeof got, &n, NULL, &err));
  CHECK(n == 0);
  sandbox_exec_free(x);
}

/* Reads both streams to their ends through descriptors. */
static size_t poll_all(CSandboxExecution *x) {
  static char piece[1 << 20];
  size_t bytes = 0;
  struct pollfd fds[2] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
  WORKS(sandbox_exec_fd(x, SANDBOX_STDOUT, &fds[0].fd, &err));
  WORKS(sandbox_exec_fd(x, SANDBOX_STDERR, &fds[1].fd, &err));
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    CHECK(poll(fds, 2, -1) > 0);
    for (int i = 0; i < 2; i++) {
      if (fds[i].fd < 0 || !fds[i].revents) continue;
      ssize_t n = read(fds[i].fd, piece, sizeof piece);
      CHECK(n >= 0 || errno == EAGAIN);
      if (n == 0) fds[i].fd = -1;
      if (n > 0) bytes += (size_t)n;
    }
  }
  return bytes;
}

/* All output comes through the descriptors; what is not read does not hold up the end that is waited for. */
static void much_through_descriptors(void) {
  CSandboxExecution *x = start("head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; exit 4", 0, NULL);
  int none = 7, exit_code = 77;
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_fd(x, SANDBOX_STDIN, &none, &err));
  CHECK(none == -1);
  CHECK(poll_all(x) == 5000000 && wait_for(x) == 4);
  sandbox_exec_free(x);

  x = start("head -c 3000000 /dev/zero; exit 5", 0, NULL);
  WORKS(sandbox_exec_fd(x, SANDBOX_STDOUT, &none, &err));
  CHECK(wait_for(x) == 5);
  sandbox_exec_free(x);

  x = start("yes", 0, NULL);
  WORKS(sandbox_exec_fd(x, SANDBOX_STDOUT, &none, &err));
  struct pollfd ready = {none, POLLIN, 0};
  CHECK(poll(&ready, 1, -1) == 1);
  WORKS(sandbox_exec_kill(x, 0, &err));
  FAILS(SANDBOX_CANCELED, sandbox_exec_wait(x, &exit_code, &err));
  sandbox_exec_free(x);
}

static void terminals(void) {
  struct text out[2];
  SandboxTerminal terminal = {100, 30};
  CSandboxExecution *x = start("stty size; read go; stty size", 0, &terminal);
  char piece[64];
  size_t n = 0;
  WORKS(sandbox_exec_read(x, piece, sizeof piece, &n, NULL, &err));
  CHECK(n == 8 && memcmp(piece, "30 100\r\n", 8) == 0);
  WORKS(sandbox_exec_resize(x, 120, 40, &err));
  WORKS(sandbox_exec_write_stdin(x, "\n", 1, &err));
  read_all(x, 64, out);
  CHECK(out[0].length >= 8 && memcmp(out[0].text + out[0].length - 8, "40 120\r\n", 8) == 0);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_resize(x, 0, 40, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_resize(x, 80, 65536, &err));
  done(x, out);

  x = start("true", 0, NULL);
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_resize(x, 80, 24, &err));
  sandbox_exec_free(x);
}

/* Waits until a script has set its trap and written a byte. */
static void until_it_says_so(CSandboxExecution *x) {
  char byte;
  size_t n = 0;
  WORKS(sandbox_exec_read(x, &byte, 1, &n, NULL, &err));
  CHECK(n == 1);
}

static void ends(void) {
  int exit_code = 77;
  CSandboxExecution *x = start("trap 'exit 9' INT; echo; while :; do sleep 0.05; done", 0, NULL);
  until_it_says_so(x);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_signal(x, 0, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_signal(x, 65, &err));
  WORKS(sandbox_exec_signal(x, SIGINT, &err));
  CHECK(wait_for(x) == 9);
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_signal(x, SIGINT, &err));
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_kill(x, 0, &err));
  sandbox_exec_free(x);

  x = start("trap '' TERM; echo; while :; do sleep 1000; done", 0, NULL);
  until_it_says_so(x);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_kill(x, -1, &err));
  WORKS(sandbox_exec_kill(x, 0, &err));
  FAILS(SANDBOX_CANCELED, sandbox_exec_wait(x, &exit_code, &err));
  CHECK(exit_code == 77);
  sandbox_exec_free(x);

  SandboxCommand cmd = {"sleep", "[\"1000\"]", NULL, NULL, NULL, 0.1};
  WORKS(sandbox_exec_start(box, &cmd, 0, NULL, &x, &err));
  FAILS(SANDBOX_TIMEOUT, sandbox_exec_wait(x, &exit_code, &err));
  sandbox_exec_free(x);

  cmd.command = "/no/such/program";
  WORKS(sandbox_exec_start(box, &cmd, 0, NULL, &x, &err));
  FAILS(SANDBOX_EXECUTION, sandbox_exec_wait(x, &exit_code, &err));
  CHECK(exit_code == 127);
  sandbox_exec_free(x);

  x = start("yes", 0, NULL); /* a handle that is released does not end its command */
  char *id = sandbox_exec_id(x), *list = NULL;
  sandbox_exec_free(x);
  WORKS(sandbox_exec_list(box, &list, &err));
  CHECK(id && strstr(list, id));
  sandbox_free_string(list);
  if (!server()) /* where no other handle can take it over */
    FAILS(SANDBOX_INVALID_STATE, sandbox_exec_attach(box, id, &x, &err));
  sandbox_free_string(id);
}

static void taking_over(void) {
  struct text out[2];
  CSandboxExecution *x = start("echo before; read line; echo after", 1, NULL);
  char *id = sandbox_exec_id(x), *info = NULL;
  CHECK(id);
  CSandboxExecution *second = (CSandboxExecution *)1;
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_attach(box, id, &second, &err));
  CHECK(second == NULL);
  WORKS(sandbox_exec_info(x, &info, &err));
  CHECK(strstr(info, id) && strstr(info, "\"status\":\"running\""));
  sandbox_free_string(info);
  WORKS(sandbox_exec_detach(x, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_detach(x, &err));
  WORKS(sandbox_exec_attach(box, id, &second, &err));
  if (server()) WORKS(sandbox_exec_close_stdin(second, &err));
  read_all(second, 64, out);
  CHECK(strcmp(out[0].text, "before\nafter\n") == 0); /* in process its input ended with its reader */
  CHECK(wait_for(second) == 0);
  done(second, out);
  FAILS(SANDBOX_NOT_FOUND, sandbox_exec_attach(box, "exec_00000000000000000000000000", &second, &err));
  sandbox_free_string(id);
}

static sem_t turned_away;

/* Reads until the execution is released, or is turned away because another thread reads. */
static void *reads(void *x) {
  char byte;
  size_t n = 77;
  CSandboxError e = {SANDBOX_OK, NULL};
  SandboxErrorCode code = sandbox_exec_read(x, &byte, 1, &n, NULL, &e);
  CHECK(n == 0);
  CHECK(code == SANDBOX_CANCELED || (code == SANDBOX_INVALID_STATE && strstr(e.message, "another thread")));
  sandbox_error_free(&e);
  if (code == SANDBOX_INVALID_STATE) sem_post(&turned_away);
  return code == SANDBOX_CANCELED ? x : NULL;
}

/* A release in one thread ends the read in another one. Of two that read, the one that is turned away
   shows that the other one is in its read. */
static void released_while_read(void) {
  pthread_t threads[2];
  void *canceled[2];
  int exit_code = 77;
  CSandboxExecution *x = start("sleep 1000", 0, NULL);
  CHECK(sem_init(&turned_away, 0, 0) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, reads, x) == 0);
  while (sem_wait(&turned_away) != 0) CHECK(errno == EINTR);
  FAILS(SANDBOX_INVALID_STATE, sandbox_exec_wait(x, &exit_code, &err));
  sandbox_exec_free(x);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], &canceled[i]) == 0);
  CHECK((canceled[0] == NULL) != (canceled[1] == NULL));
  sem_destroy(&turned_away);
}

static void pause_for(long microseconds) {
  nanosleep(&(struct timespec){0, 1000 * microseconds}, NULL);
}

/* Starts a command in the box of a handle, and ends it if that works. Returns NULL unless it began and has no handle. */
static void *start_and_kill(void *handle) {
  CSandboxError e = {SANDBOX_OK, NULL};
  CSandboxExecution *x = NULL;
  SandboxCommand cmd = {"sleep", "[\"1000\"]", NULL, NULL, NULL, 0};
  if (sandbox_exec_start(handle, &cmd, 0, NULL, &x, &e) == SANDBOX_OK && sandbox_exec_kill(x, 0, &e) == SANDBOX_OK)
    sandbox_exec_free(x);
  else
    CHECK(e.code == SANDBOX_INVALID_ARGUMENT && !x);
  void *began = e.message && strstr(e.message, "released during the call") ? handle : NULL;
  sandbox_error_free(&e);
  return began;
}

/* A command whose box's handle is released while it starts has no handle, and does not run on. */
static void released_while_it_starts(CSandboxRuntime *runtime) {
  CBoxHandle *own = new_box(runtime);
  char *id = sandbox_box_id(own), *list = NULL;
  int began = 0;
  for (int i = 0; i < 40; i++) {
    CBoxHandle *second = NULL;
    pthread_t thread;
    void *without_handle = NULL;
    WORKS(sandbox_get(runtime, id, &second, &err));
    CHECK(pthread_create(&thread, NULL, start_and_kill, second) == 0);
    pause_for(50 * i);
    sandbox_box_free(second);
    CHECK(pthread_join(thread, &without_handle) == 0);
    began += without_handle != NULL;
  }
  CHECK(began > 0);
  for (int tries = 0, running = 1; running; tries++) {
    CHECK(tries < 2000);
    pause_for(10000);
    WORKS(sandbox_exec_list(own, &list, &err));
    running = strstr(list, "\"running\"") != NULL;
    sandbox_free_string(list);
  }
  sandbox_free_string(id);
  sandbox_box_free(own);
}

static void refused(void) {
  CSandboxExecution *x = (CSandboxExecution *)1;
  SandboxCommand cmd = {"true", NULL, NULL, NULL, NULL, 0};
  SandboxTerminal terminal = {70000, 1};
  char byte, *text = NULL;
  size_t n = 77;
  int number = 77;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_start(NULL, &cmd, 0, NULL, &x, &err));
  CHECK(x == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_start(box, NULL, 0, NULL, &x, &err));
  SAYS("cmd");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_start(box, &cmd, 0, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_start(box, &cmd, 0, &terminal, &x, &err));
  SAYS("cols");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_attach(box, NULL, &x, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_list(box, NULL, &err));
  WORKS(sandbox_exec_start(box, &cmd, 0, NULL, &x, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_read(x, NULL, 1, &n, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_read(x, &byte, 0, &n, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_read(x, &byte, 1, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_write_stdin(x, NULL, 1, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_wait(x, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_fd(x, SANDBOX_STDOUT, NULL, &err));
  CHECK(wait_for(x) == 0);
  sandbox_exec_free(x);
  sandbox_exec_free(x);
  sandbox_exec_free(NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_read(x, &byte, 1, &n, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_wait(x, &number, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_info(x, &text, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_close_stdin(x, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_kill(x, 0, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_read((CSandboxExecution *)box, &byte, 1, &n, NULL, &err));
  CHECK(sandbox_exec_id(x) == NULL && sandbox_exec_id(NULL) == NULL);
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  box = new_box(runtime);
  bytes_as_they_are();
  input();
  descriptors();
  waits();
  much_through_descriptors();
  terminals();
  ends();
  taking_over();
  released_while_read();
  released_while_it_starts(runtime);
  refused();

  CSandboxExecution *x = start("sleep 1000", 0, NULL);
  char byte;
  size_t n = 77;
  sandbox_box_free(box); /* the execution belongs to the runtime */
  WORKS(sandbox_exec_signal(x, SIGCONT, &err));
  sandbox_runtime_free(runtime);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_exec_read(x, &byte, 1, &n, NULL, &err));
  return 0;
}
