/* Commands: exit codes, what they get, and what can't be run. */
#include <math.h>

#include "check.h"

static CBoxHandle *box;
static struct text out[2];

static const char *output(int is_stderr) { return out[is_stderr].text ? out[is_stderr].text : ""; }

static void forget(void) {
  free(out[0].text);
  free(out[1].text);
  memset(out, 0, sizeof out);
}

/* Runs a shell script and returns its exit code, with the output in out. */
static int sh(const char *script) {
  char args[1024];
  int exit_code = 77;
  forget();
  snprintf(args, sizeof args, "[\"-c\",\"%s\"]", script);
  WORKS(sandbox_execute(box, "sh", args, collect, out, &exit_code, &err));
  return exit_code;
}

static void fails_cmd(SandboxErrorCode want, SandboxCommand cmd, int want_exit_code, const char *says) {
  int exit_code = 77;
  forget();
  FAILS(want, sandbox_execute_cmd(box, &cmd, collect, out, &exit_code, &err));
  SAYS(says);
  CHECK(exit_code == want_exit_code);
}

static void exit_codes(void) {
  CHECK(sh("exit 0") == 0);
  CHECK(sh("exit 1") == 1);
  CHECK(sh("exit 255") == 255);
  CHECK(sh("exit 137") == 137); /* not a signal */
  CHECK(sh("kill -TERM $$") == -15);
  CHECK(sh("kill -KILL $$") == -9);
  CHECK(sh("kill -HUP $$; exit 4") == -1);
}

static void what_it_is_given(void) {
  int exit_code = 77;
  forget();
  WORKS(sandbox_execute(box, "printf", "[\"%s|\",\"a b\",\"\",\"\\\"\\u00fc\"]", collect, out, &exit_code, &err));
  CHECK(exit_code == 0 && strcmp(output(0), "a b||\"\xc3\xbc|") == 0);
  CHECK(sh("echo out; echo err >&2; echo $COLOUR") == 0);
  CHECK(strcmp(output(0), "out\nblue\n") == 0 && strcmp(output(1), "err\n") == 0);
  CHECK(sh("cat") == 0 && output(0)[0] == 0); /* standard input is empty */

  SandboxCommand cmd = {"sh", "[\"-c\",\"pwd; echo $COLOUR $SIZE; id -u\"]",
                        "[[\"COLOUR\",\"red\"],[\"SIZE\",\"big\"]]", "/tmp", "nobody", 5};
  forget();
  WORKS(sandbox_execute_cmd(box, &cmd, collect, out, &exit_code, &err));
  CHECK(strcmp(output(0), "/tmp\nred big\n65534\n") == 0);
  cmd.env_json = "{\"COLOUR\":\"green\"}";
  forget();
  WORKS(sandbox_execute_cmd(box, &cmd, collect, out, &exit_code, &err));
  CHECK(strstr(output(0), "green"));

  /* No callback: the output is read and dropped, not left to fill a pipe. */
  WORKS(sandbox_execute(box, "sh", "[\"-c\",\"yes | head -c 5000000\"]", NULL, NULL, &exit_code, &err));
  CHECK(exit_code == 0);
}

static void what_can_not_be_started(void) {
  fails_cmd(SANDBOX_EXECUTION, (SandboxCommand){.command = "no-such-command"}, 127, "no-such-command");
  CHECK(strstr(output(1), "no-such-command")); /* a line on standard error, too */
  fails_cmd(SANDBOX_EXECUTION, (SandboxCommand){.command = "/no/such"}, 127, "/no/such");
  fails_cmd(SANDBOX_EXECUTION, (SandboxCommand){.command = "/etc/passwd"}, 126, "/etc/passwd");
  fails_cmd(SANDBOX_EXECUTION, (SandboxCommand){.command = "/etc"}, 126, "/etc");
  fails_cmd(SANDBOX_EXECUTION, (SandboxCommand){.command = "true", .workdir = "/no/such"}, 126, "/no/such");
  fails_cmd(SANDBOX_EXECUTION, (SandboxCommand){.command = "true", .user = "no-such-user"}, 126, "no-such-user");
}

static void what_is_refused(void) {
  const char *args[] = {"", "{}", "\"x\"", "[1]", "[null]", "[\"x\"", "[\"x\"] y", "[[\"x\"]]", "[\"\\u0000\"]", "[\"\xff\"]"};
  for (size_t i = 0; i < sizeof args / sizeof *args; i++)
    fails_cmd(SANDBOX_INVALID_ARGUMENT, (SandboxCommand){.command = "true", .args_json = args[i]}, 77, "");
  const char *envs[] = {"", "1", "[\"A\"]", "[[\"A\"]]", "[[\"A\",\"b\",\"c\"]]", "[[\"A\",1]]", "[[\"\",\"b\"]]", "[[\"A=\",\"b\"]]", "{\"A\":1}"};
  for (size_t i = 0; i < sizeof envs / sizeof *envs; i++)
    fails_cmd(SANDBOX_INVALID_ARGUMENT, (SandboxCommand){.command = "true", .env_json = envs[i]}, 77, "");
  const double times[] = {-1, -0.001, NAN, INFINITY, -INFINITY, 1e300};
  for (size_t i = 0; i < sizeof times / sizeof *times; i++)
    fails_cmd(SANDBOX_INVALID_ARGUMENT, (SandboxCommand){.command = "true", .timeout_secs = times[i]}, 77, "timeout_secs");
  fails_cmd(SANDBOX_INVALID_ARGUMENT, (SandboxCommand){.command = ""}, 77, "cmd");
  fails_cmd(SANDBOX_INVALID_ARGUMENT, (SandboxCommand){.command = "true", .workdir = "relative"}, 77, "working_dir");
  fails_cmd(SANDBOX_INVALID_ARGUMENT, (SandboxCommand){.command = "true", .user = "\xff"}, 77, "user");

  int exit_code = 77;
  SandboxCommand no_command = {0}, fine = {.command = "true"};
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute(box, NULL, NULL, NULL, NULL, &exit_code, &err)), SAYS("command");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute(box, "true", NULL, NULL, NULL, NULL, &err)), SAYS("out_exit_code");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute_cmd(box, NULL, NULL, NULL, &exit_code, &err)), SAYS("cmd");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute_cmd(box, &no_command, NULL, NULL, &exit_code, &err)), SAYS("command");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_execute_cmd(box, &fine, NULL, NULL, NULL, &err)), SAYS("out_exit_code");

  /* Arguments of 2 MB, and of more than a command may have. */
  for (size_t n = 200 * 1000; n <= 2 * 1000 * 1000; n *= 10) {
    char *big = (char *)malloc(n + 5);
    memset(big, 'a', n + 4);
    memcpy(big, "[\"", 2);
    memcpy(big + n + 2, "\"]", 3);
    fails_cmd(SANDBOX_INVALID_ARGUMENT, (SandboxCommand){.command = "true", .args_json = big}, 77, "bytes");
    free(big);
  }
}

static void timeouts(void) {
  const char *sleepers[] = {"[\"-c\",\"echo begun; sleep 1000\"]",
                            "[\"-c\",\"trap '' TERM; echo begun; (trap '' TERM; sleep 1000) & sleep 1000\"]"};
  for (size_t i = 0; i < sizeof sleepers / sizeof *sleepers; i++) {
    fails_cmd(SANDBOX_TIMEOUT, (SandboxCommand){.command = "sh", .args_json = sleepers[i], .timeout_secs = 3}, 77, "time");
    CHECK(strcmp(output(0), "begun\n") == 0);
    CHECK(sh("! ps | grep -q '[s]leep 1000'") == 0); /* the whole process tree has ended */
  }
}

static void output_without_end(void) {
  SandboxCommand cmd = {.command = "yes", .timeout_secs = 0.3};
  int exit_code = 77;
  FAILS(SANDBOX_TIMEOUT, sandbox_execute_cmd(box, &cmd, NULL, NULL, &exit_code, &err));
  CHECK(exit_code == 77);
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  box = new_box(runtime);
  exit_codes();
  what_it_is_given();
  what_can_not_be_started();
  what_is_refused();
  timeouts();
  output_without_end();
  forget();
  sandbox_runtime_free(runtime);
  return 0;
}
