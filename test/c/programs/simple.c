/* sandbox_simple_*: one box, whole results. Needs the image "default". */
#include "check.h"

int main(void) {
  CSandboxSimple *simple = NULL;
  CSandboxExecResult *result = NULL;
  const char *script[] = {"-c", "echo out $0 $1; echo err >&2; exit 7", "a", "b c"};
  const char *hole[] = {"-c", NULL};
  const char *nul[] = {"-c", "printf 'a\\000\\377b'"};
  const char *flood[] = {"-c", "yes"};
  const char *much[] = {"-c", "yes | head -c 67108864"};
  const char *signal[] = {"-c", "kill -9 $$"};

  WORKS(sandbox_simple_new("default", 1, 128, &simple, &err));
  WORKS(sandbox_simple_run(simple, "sh", script, 4, &result, &err));
  CHECK(result->exit_code == 7);
  CHECK(strcmp(result->stdout_text, "out a b c\n") == 0);
  CHECK(strcmp(result->stderr_text, "err\n") == 0);
  sandbox_result_free(result);

  WORKS(sandbox_simple_run(simple, "true", NULL, 0, &result, &err));
  CHECK(result->exit_code == 0 && result->stdout_text[0] == 0 && result->stderr_text[0] == 0);
  sandbox_result_free(result);

  WORKS(sandbox_simple_run(simple, "sh", nul, 2, &result, &err));
  CHECK(strcmp(result->stdout_text, "a\xef\xbf\xbd\xef\xbf\xbd" "b") == 0);
  sandbox_result_free(result);
  WORKS(sandbox_simple_run(simple, "sh", signal, 2, &result, &err));
  CHECK(result->exit_code == -9);
  sandbox_result_free(result);

  /* The same box in every run. */
  const char *write[] = {"-c", "echo kept > /tmp/file"}, *read[] = {"/tmp/file"};
  WORKS(sandbox_simple_run(simple, "sh", write, 2, &result, &err));
  sandbox_result_free(result);
  WORKS(sandbox_simple_run(simple, "cat", read, 1, &result, &err));
  CHECK(strcmp(result->stdout_text, "kept\n") == 0);
  sandbox_result_free(result);

  /* 64 MiB are kept, more is refused, and the box keeps running. */
  WORKS(sandbox_simple_run(simple, "sh", much, 2, &result, &err));
  CHECK(strlen(result->stdout_text) == 64 << 20);
  sandbox_result_free(result);
  FAILS(SANDBOX_RESOURCE_EXHAUSTED, sandbox_simple_run(simple, "sh", flood, 2, &result, &err)), SAYS("64 MiB");
  CHECK(result == NULL);
  WORKS(sandbox_simple_run(simple, "true", NULL, 0, &result, &err));
  sandbox_result_free(result);

  result = (CSandboxExecResult *)&err;
  FAILS(SANDBOX_EXECUTION, sandbox_simple_run(simple, "no-such-command", NULL, 0, &result, &err)), SAYS("no-such-command");
  CHECK(result == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run(simple, NULL, NULL, 0, &result, &err)), SAYS("command");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run(simple, "sh", NULL, 1, &result, &err)), SAYS("args");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run(simple, "sh", hole, 2, &result, &err)), SAYS("args");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run(simple, "sh", script, -1, &result, &err)), SAYS("argc");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run(simple, "sh", script, 4, NULL, &err)), SAYS("out");

  sandbox_simple_free(simple);
  sandbox_simple_free(simple);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_simple_run(simple, "true", NULL, 0, &result, &err)), SAYS("simple");

  /* Its box was removed with it; 0 or less means the defaults. */
  CSandboxRuntime *runtime = new_runtime();
  char *json = NULL;
  WORKS(sandbox_list_info(runtime, &json, &err));
  CHECK(strcmp(json, "[]") == 0);
  sandbox_free_string(json);
  WORKS(sandbox_simple_new("default", 0, -1, &simple, &err));
  WORKS(sandbox_list_info(runtime, &json, &err));
  CHECK(strstr(json, "\"cpus\":2,\"memory_mib\":512"));
  sandbox_free_string(json);
  sandbox_simple_free(simple);
  sandbox_runtime_free(runtime);
  return 0;
}
