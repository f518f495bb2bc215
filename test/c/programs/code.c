/* Code in contexts of a box that has the languages of this host. */
#include "check.h"

#include <poll.h>

static CBoxHandle *box;

static const char *options(void) {
  static char doc[8192];
  const char *rootfs = getenv("ROOTFS");
  snprintf(doc, sizeof doc,
           "{\"rootfs\":{\"RootfsPath\":\"%s\"},\"env\":[],\"network\":\"None\",\"ports\":[],\"cpus\":1,\"volumes\":["
           "{\"host_path\":\"/usr\",\"guest_path\":\"/usr\",\"read_only\":true},"
           "{\"host_path\":\"/usr/lib\",\"guest_path\":\"/lib\",\"read_only\":true},"
           "{\"host_path\":\"/usr/lib64\",\"guest_path\":\"/lib64\",\"read_only\":true}]}",
           rootfs ? rootfs : "/");
  return doc;
}

/* Whether the next event of a run waits, or comes within so many milliseconds. */
static int waits(CSandboxCodeRun *run, int time) {
  struct pollfd p = {-1, POLLIN, 0};
  WORKS(sandbox_code_fd(run, &p.fd, &err));
  return poll(&p, 1, time) == 1;
}

/* Whether the next event has a text. */
static int next(CSandboxCodeRun *run, const char *text) {
  char *event = NULL;
  WORKS(sandbox_code_read(run, 60, &event, &err));
  int found = strstr(event, text) != NULL;
  if (!found) fprintf(stderr, "%s has no %s\n", event, text);
  sandbox_free_string(event);
  return found;
}

static void runs(void) {
  CSandboxCodeRun *run = NULL;
  char *event = NULL;
  WORKS(sandbox_code_start(box, "{\"code\":\"print('on', flush=True); x = 41; x + 1\"}", &run, &err));
  CHECK(waits(run, 60000));
  CHECK(next(run, "{\"type\":\"start\",\"context_id\":\"python\",\"execution_count\":1,\"fresh\":true}"));
  CHECK(next(run, "{\"type\":\"stdout\",\"text\":\"on\\n\"}"));
  CHECK(next(run, "\"result\":{\"is_main\":true,\"text\":\"42\"}"));
  CHECK(next(run, "\"type\":\"end\",\"status\":\"succeeded\""));
  CHECK(waits(run, 60000)); /* the end */
  FAILS(SANDBOX_INVALID_STATE, sandbox_code_read(run, 60, &event, &err));
  CHECK(waits(run, 0));
  sandbox_code_free(run);
  sandbox_code_free(run);
  sandbox_code_free(NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_read(run, 0, &event, &err));

  WORKS(sandbox_code_start(box, "{\"code\":\"while True: pass\"}", &run, &err));
  CHECK(next(run, "\"start\"") && !waits(run, 0));
  FAILS(SANDBOX_TIMEOUT, sandbox_code_read(run, 0, &event, &err));
  CHECK(!event);
  WORKS(sandbox_context_interrupt(box, "python", &event, &err));
  sandbox_free_string(event);
  CHECK(next(run, "\"KeyboardInterrupt\""));
  CHECK(next(run, "\"interrupted\""));
  sandbox_code_free(run);

  WORKS(sandbox_code_start(box, "{\"code\":\"while True: pass\"}", &run, &err));
  sandbox_code_free(run); /* interrupts it: the next run begins */
  WORKS(sandbox_code_start(box, "{\"code\":\"x\"}", &run, &err));
  CHECK(next(run, "\"start\"") && next(run, "\"41\"") && next(run, "\"end\""));
  sandbox_code_free(run);
}

static void contexts(void) {
  CSandboxCodeRun *run = NULL;
  char *about = NULL, id[64] = "", code[256];
  WORKS(sandbox_context_create(box, "{\"working_dir\":\"/tmp\"}", &about, &err));
  CHECK(sscanf(about, "{\"id\":\"%30[^\"]\"", id) == 1 && strstr(about, "\"working_dir\":\"/tmp\""));
  sandbox_free_string(about);
  snprintf(code, sizeof code, "{\"code\":\"import os; os.getcwd()\",\"context\":\"%s\"}", id);
  WORKS(sandbox_code_start(box, code, &run, &err));
  CHECK(next(run, id) && next(run, "'/tmp'") && next(run, "\"end\""));
  sandbox_code_free(run);
  WORKS(sandbox_context_list(box, &about, &err));
  CHECK(about[0] == '[' && strstr(about, id) && strstr(about, "\"id\":\"python\""));
  sandbox_free_string(about);
  WORKS(sandbox_context_restart(box, id, &about, &err));
  sandbox_free_string(about);
  WORKS(sandbox_context_remove(box, id, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_context_remove(box, id, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_context_restart(box, id, &about, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_code_start(box, code, &run, &err));
  CHECK(!run && !about);
  WORKS(sandbox_context_create(box, NULL, &about, &err));
  sandbox_free_string(about);
}

static void refused(void) {
  CSandboxCodeRun *run = NULL;
  char *out = NULL;
  int fd = 0;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_start(box, "{}", &run, &err));
  SAYS("code");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_start(box, "{\"code\":\"\",\"language\":\"cobol\"}", &run, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_start(box, NULL, &run, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_start(box, "{\"code\":\"\"}", NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_start(NULL, "{\"code\":\"\"}", &run, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_read(NULL, 0, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_code_fd(NULL, &fd, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_context_interrupt(box, NULL, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_context_remove(box, NULL, &err));
  FAILS(SANDBOX_EXECUTION, sandbox_context_create(box, "{\"env\":{\"PATH\":\"/nowhere\"}}", &out, &err));
  SAYS("python3");
  CHECK(!run && !out);
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  WORKS(sandbox_create_box(runtime, options(), &box, &err));
  runs();
  contexts();
  refused();
  sandbox_box_free(box);
  sandbox_runtime_free(runtime);
  return 0;
}
