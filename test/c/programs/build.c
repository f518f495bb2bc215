/* Images that are built of recipes, in process and on a server. */
#include "check.h"

#include <poll.h>
#include <sys/stat.h>
#include <time.h>

static CSandboxRuntime *runtime;

/* Reads events up to one that has a text, and returns whether there is one. */
static int until(CSandboxBuild *build, const char *text) {
  char *event = NULL;
  int found = 0;
  while (!found && sandbox_build_read(build, 60, &event, NULL) == SANDBOX_OK) {
    found = strstr(event, text) != NULL;
    sandbox_free_string(event);
  }
  if (!found) fprintf(stderr, "no event has %s\n", text);
  return found;
}

static CSandboxBuild *begun(const char *document) {
  CSandboxBuild *build = NULL;
  WORKS(sandbox_build_start(runtime, document, &build, &err));
  return build;
}

static void whole(const char *context) {
  char document[1024], *text = NULL;
  snprintf(document, sizeof document,
           "{\"context\":\"%s\",\"name\":\"built\",\"args\":{\"A\":\"b\"},\"recipe\":"
           "\"FROM base\\nARG A\\nRUN echo $A \\\"gr\xc3\xbc\xc3\x9f" "e\\\"\\nCOPY file /file\\nENV X=1\\n\"}",
           context);
  CSandboxBuild *build = begun(document);
  struct pollfd p = {-1, POLLIN, 0};
  WORKS(sandbox_build_fd(build, &p.fd, &err));
  CHECK(poll(&p, 1, 60000) == 1);
  CHECK(until(build, "\"line\":3,\"text\":\"RUN "));
  CHECK(until(build, "\"output\":{\"step\":3,\"stream\":\"stdout\",\"data\":\"b gr\xc3\xbc\xc3\x9f" "e\\n\"}"));
  CHECK(until(build, "{\"type\":\"end\",\"image\":{\"name\":\"built:latest\""));
  FAILS(SANDBOX_INVALID_STATE, sandbox_build_read(build, 60, &text, &err));
  WORKS(sandbox_build_wait(build, &text, &err));
  CHECK(strstr(text, "\"env\":[") && strstr(text, "X=1"));
  sandbox_free_string(text);
  sandbox_build_free(build);
  sandbox_build_free(build);
  sandbox_build_free(NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_read(build, 0, &text, &err));

  build = begun(document); /* from what was made before */
  WORKS(sandbox_build_wait(build, NULL, &err));
  sandbox_build_free(build);
}

static void failures(void) {
  CSandboxBuild *build = NULL;
  char *text = NULL;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_start(NULL, "{}", &build, &err)), SAYS("runtime");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_start(runtime, NULL, &build, &err)), SAYS("build_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_start(runtime, "{}", NULL, &err)), SAYS("out");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_start(runtime, "{}", &build, &err)), SAYS("recipe is missing");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_start(runtime, "{\"recipe\":\"\",\"x\":1,\"cpus\":0}", &build, &err)), SAYS("x is not"), SAYS("cpus");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_start(runtime, "{\"recipe\":\"FROM base\\nRUM x\\n\"}", &build, &err)), SAYS("line 2");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_build_start(runtime, "{\"context\":\"/proc/nothing\"}", &build, &err)), SAYS("Dockerfile");
  CHECK(!build);

  build = begun("{\"recipe\":\"FROM base\\nRUN echo before; exit 3\\n\"}");
  CHECK(until(build, "{\"type\":\"end\",\"error\":{\"code\":\"image_error\""));
  FAILS(SANDBOX_IMAGE, sandbox_build_wait(build, &text, &err)), SAYS("exit code 3");
  sandbox_build_free(build);
  build = begun("{\"recipe\":\"FROM base\\nCOPY nothing /\\n\"}");
  FAILS(SANDBOX_NOT_FOUND, sandbox_build_wait(build, &text, &err)), SAYS("line 2");
  sandbox_build_free(build);
  build = begun("{\"recipe\":\"FROM base\\nRUN sleep 1000\\n\",\"timeout_ms\":3000}");
  FAILS(SANDBOX_TIMEOUT, sandbox_build_wait(build, &text, &err)), SAYS("line 2");
  sandbox_build_free(build);
}

/* A build that is released ends, and so does one whose runtime is released. */
static void cancel(void) {
  char *event = NULL;
  const char *endless = "{\"recipe\":\"FROM base\\nRUN echo on; sleep 1000\\n\"}";
  CSandboxBuild *build = begun(endless);
  CHECK(until(build, "\"data\":\"on\\n\""));
  FAILS(SANDBOX_TIMEOUT, sandbox_build_read(build, 0, &event, &err));
  sandbox_build_free(build);
  const time_t begin = time(NULL);
  for (int left = 1; left;) { /* a server ends it when it notices */
    CHECK(time(NULL) - begin < 60);
    WORKS(sandbox_list_info(runtime, &event, &err));
    left = strcmp(event, "[]") != 0;
    CHECK(!left || server());
    sandbox_free_string(event);
  }
  CHECK(until(begun(endless), "\"data\":\"on\\n\"")); /* is left to the end of the runtime */
}

int main(void) {
  char context[] = "/tmp/sandbox-build-XXXXXX", file[64];
  if (!mkdtemp(context)) return 1;
  chmod(context, 0700);
  snprintf(file, sizeof file, "%s/file", context);
  FILE *f = fopen(file, "w");
  if (!f) return 1;
  fputs("copied", f);
  fclose(f);
  runtime = new_runtime();
  WORKS(sandbox_image_import(runtime, "base", getenv("ROOTFS"), NULL, NULL, NULL, &err));
  whole(context);
  failures();
  cancel();
  sandbox_runtime_free(runtime);
  remove(file);
  remove(context);
  return 0;
}
