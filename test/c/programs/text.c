/* The text that a callback gets: whole characters, UTF-8, no NUL. */
#include "check.h"

static CBoxHandle *box;

/* Runs a shell script and checks its standard output. */
static void gives(const char *script, const char *want) {
  struct text out[2] = {{0}, {0}};
  char args[1024];
  int exit_code = 77;
  snprintf(args, sizeof args, "[\"-c\",\"%s\"]", script);
  WORKS(sandbox_execute(box, "sh", args, collect, out, &exit_code, &err));
  if (exit_code != 0 || strcmp(out[0].text ? out[0].text : "", want) != 0) {
    fprintf(stderr, "%s gave %d, \"%s\", want \"%s\"\n", script, exit_code, out[0].text, want);
    exit(1);
  }
  free(out[0].text);
  free(out[1].text);
}

struct count {
  size_t bytes, foxes, pieces;
};

/* Each piece holds whole foxes. */
static void foxes(const char *text, int is_stderr, void *to) {
  struct count *c = (struct count *)to;
  size_t n = strlen(text);
  CHECK(!is_stderr && n > 0 && n % 4 == 0);
  for (size_t i = 0; i < n; i += 4)
    CHECK(memcmp(text + i, "\xf0\x9f\xa6\x8a", 4) == 0);
  c->bytes += n;
  c->foxes += n / 4;
  c->pieces++;
}

static void number(const char *text, int is_stderr, void *to) {
  (void)text, (void)is_stderr;
  CHECK(to == (void *)7);
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  box = new_box(runtime);

  gives("printf '\\\\303\\\\274'", "\xc3\xbc");
  gives("printf '\\\\303'; sleep 0.1; printf '\\\\274.'", "\xc3\xbc.");
  gives("printf 'a\\\\000b'", "a\xef\xbf\xbd" "b");
  gives("printf 'a\\\\377b'", "a\xef\xbf\xbd" "b");
  gives("printf 'a\\\\303'", "a\xef\xbf\xbd");
  gives("printf 'a\\\\303'; printf 'e\\\\303' >&2; sleep 0.1; printf '\\\\274'", "a\xc3\xbc");

  struct count c = {0, 0, 0};
  int exit_code = 77;
  WORKS(sandbox_execute(box, "sh", "[\"-c\",\"printf x >&2; yes \xf0\x9f\xa6\x8a | tr -d '\\\\n' | head -c 4000000\"]",
                        NULL, NULL, &exit_code, &err));
  WORKS(sandbox_execute(box, "sh", "[\"-c\",\"yes \xf0\x9f\xa6\x8a | tr -d '\\\\n' | head -c 4000000\"]",
                        foxes, &c, &exit_code, &err));
  CHECK(exit_code == 0 && c.bytes == 4000000 && c.foxes == 1000000 && c.pieces > 1);

  /* user_data is the caller's, whatever it is. */
  WORKS(sandbox_execute(box, "echo", "[\"x\"]", number, (void *)7, &exit_code, &err));
  sandbox_runtime_free(runtime);
  return 0;
}
