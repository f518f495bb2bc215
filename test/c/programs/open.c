/*
 * Where sandbox_runtime_open goes. DAEMON is the URL of a daemon's socket, TCP
 * that of its TCP address, KEY a key of it; the home has no daemon.
 */
#define _GNU_SOURCE /* setenv */
#include <unistd.h>

#include "check.h"

static CSandboxRuntime *runtime;

/* The runtime that was opened has so many boxes. */
static void has(const char *list) {
  char *json = NULL;
  WORKS(sandbox_list_info(runtime, &json, &err));
  if (list)
    CHECK(strcmp(json, list) == 0);
  else
    CHECK(strstr(json, "\"there\""));
  sandbox_free_string(json);
  sandbox_runtime_free(runtime);
}

/* Checks that it is the daemon, which has a box of that name. */
static void opens_the_daemon(const char *profile) {
  WORKS(sandbox_runtime_open(profile, &runtime, &err));
  has(NULL);
}

static void remotes(void) {
  const char *wrong[] = {"", "ftp://host", "unix://relative", "http://a:b@host", "no url"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    runtime = (CSandboxRuntime *)1;
    FAILS(SANDBOX_CONFIG, sandbox_runtime_new_remote(wrong[i], NULL, NULL, &runtime, &err));
    CHECK(runtime == NULL);
  }
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_new_remote(NULL, NULL, NULL, &runtime, &err));
  SAYS("url");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_new_remote("http://host", NULL, NULL, NULL, &err));
  FAILS(SANDBOX_CONFIG, sandbox_runtime_new_remote("http://host", "a key", NULL, &runtime, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_runtime_open(NULL, NULL, &err));
  FAILS(SANDBOX_CONFIG, sandbox_runtime_open("", &runtime, &err));

  char *json = NULL;
  WORKS(sandbox_runtime_new_remote(getenv("TCP"), NULL, NULL, &runtime, &err));
  FAILS(SANDBOX_UNAUTHENTICATED, sandbox_list_info(runtime, &json, &err));
  CHECK(json == NULL);
  sandbox_runtime_free(runtime);
  WORKS(sandbox_runtime_new_remote(getenv("TCP"), getenv("KEY"), "lab", &runtime, &err));
  has(NULL);
  WORKS(sandbox_runtime_new_remote(getenv("TCP"), getenv("KEY"), "other", &runtime, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_list_info(runtime, &json, &err));
  sandbox_runtime_free(runtime);
  WORKS(sandbox_runtime_new_remote("unix:///nowhere", NULL, NULL, &runtime, &err));
  FAILS(SANDBOX_UNAVAILABLE, sandbox_list_info(runtime, &json, &err));
  SAYS("/nowhere");
  sandbox_runtime_free(runtime);
}

int main(void) {
  remotes();

  WORKS(sandbox_runtime_open(NULL, &runtime, &err)); /* root's own home, in this process */
  has("[]");
  FAILS(SANDBOX_CONFIG, sandbox_runtime_open("nobody", &runtime, &err));
  SAYS("nobody");
  opens_the_daemon("work"); /* a profile of the credentials file in HOME */

  CHECK(setenv("SANDBOX_PROFILE", "work", 1) == 0); /* which Go does not see by itself */
  opens_the_daemon(NULL);
  CHECK(setenv("SANDBOX_REST_URL", getenv("TCP"), 1) == 0);
  CHECK(setenv("SANDBOX_API_KEY", getenv("KEY"), 1) == 0);
  CHECK(setenv("SANDBOX_REST_PATH_PREFIX", "lab", 1) == 0);
  CHECK(setenv("SANDBOX_PROFILE", "nobody", 1) == 0);
  opens_the_daemon(NULL);
  CHECK(unsetenv("SANDBOX_PROFILE") == 0 && unsetenv("SANDBOX_REST_URL") == 0);
  CHECK(unsetenv("SANDBOX_API_KEY") == 0 && unsetenv("SANDBOX_REST_PATH_PREFIX") == 0);
  CHECK(setenv("SANDBOX_HOME", getenv("DAEMON_HOME"), 1) == 0);
  opens_the_daemon(NULL); /* it listens on its socket */

  CHECK(setenv("SANDBOX_HOME", "/nowhere", 1) == 0 && setenv("HOME", "/nowhere", 1) == 0);
  CHECK(setresuid(1000, 1000, 1000) == 0);
  runtime = (CSandboxRuntime *)1;
  FAILS(SANDBOX_STORAGE, sandbox_runtime_open(NULL, &runtime, &err)); /* a user's own home, which can't be there */
  SAYS("make the home /nowhere");
  CHECK(runtime == NULL);
  return 0;
}
