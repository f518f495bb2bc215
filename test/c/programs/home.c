/* Homes and programs: what is accepted, and what is refused with which code. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"

static char path[4096];

/* The path of a name in the directory that the test passed. */
static const char *in_folder(const char *name) {
  snprintf(path, sizeof path, "%s/%s", getenv("LATE_HOME"), name);
  return path;
}

static void works_at(const char *home) {
  CSandboxRuntime *runtime = NULL;
  int exit_code = 77;
  WORKS(sandbox_runtime_new(home, "[\"docker.io\"]", &runtime, &err));
  WORKS(sandbox_execute(new_box(runtime), "true", NULL, NULL, NULL, &exit_code, &err));
  CHECK(exit_code == 0);
  sandbox_runtime_free(runtime);
}

/* A home that can't be used: the failure comes at once, or with the first box. */
static void refused_at(const char *home, SandboxErrorCode want) {
  CSandboxRuntime *runtime = NULL;
  CBoxHandle *box = (CBoxHandle *)&err;
  if (sandbox_runtime_new(home, NULL, &runtime, NULL) == SANDBOX_OK)
    FAILS(want, sandbox_create_box(runtime, options_with(""), &box, &err)), CHECK(box == NULL);
  else
    FAILS(want, sandbox_runtime_new(home, NULL, &runtime, &err)), CHECK(runtime == NULL);
  sandbox_runtime_free(runtime);
}

static void programs(void) {
  CSandboxRuntime *runtime = (CSandboxRuntime *)&err;
  const char *was = getenv("SANDBOX_HELPER_DIR");
  char *saved = was ? strdup(was) : NULL;
  CHECK(setenv("SANDBOX_HELPER_DIR", "/no/such/programs", 1) == 0);
  FAILS(SANDBOX_ENGINE, sandbox_runtime_new(NULL, NULL, &runtime, &err));
  SAYS("/no/such/programs"), SAYS("sandbox-shim");
  CHECK(runtime == NULL);
  unsetenv("SANDBOX_HELPER_DIR");
  works_at(NULL); /* found beside the library */
  if (saved)
    setenv("SANDBOX_HELPER_DIR", saved, 1);
  free(saved);
}

int main(void) {
  char name[256] = {0};
  works_at(NULL);
  works_at(in_folder("new/directories/are/made"));
  memset(name, 'n', 200);
  works_at(in_folder(name));
  CHECK(chdir(getenv("LATE_HOME")) == 0);
  works_at("relative");

  int fd = open(in_folder("file"), O_CREAT | O_WRONLY, 0600);
  CHECK(fd >= 0 && close(fd) == 0);
  refused_at(in_folder("file"), SANDBOX_STORAGE);
  refused_at(in_folder("file/below"), SANDBOX_STORAGE);
  refused_at("/proc/no", SANDBOX_STORAGE);
  programs();

  /* A user who is not root has no boxes in a home of root's. */
  CSandboxRuntime *runtime = new_runtime();
  CBoxHandle *box = (CBoxHandle *)&err;
  CHECK(seteuid(65534) == 0);
  FAILS(SANDBOX_STORAGE, sandbox_create_box(runtime, options_with(""), &box, &err)), SAYS("permission denied");
  CHECK(box == NULL && seteuid(0) == 0);
  CHECK(prctl(PR_SET_DUMPABLE, 1) == 0); /* which a change of user ends: the leak checker looks at its own process */
  sandbox_runtime_free(runtime);
  return 0;
}
