/*
 * Every allocation that C gets is accounted for: after all is released, the
 * one byte that each released handle keeps is all that is left.
 */
#include "check.h"

size_t __sanitizer_get_current_allocated_bytes(void); /* the address sanitizer's */

/* How often; fewer on a server, which takes longer. */
#define ROUNDS (server() ? 10 : 50)

/* Makes and releases 4 handles. */
static void round_trip(void) {
  CSandboxRuntime *runtime = new_runtime();
  CBoxHandle *box = new_box(runtime), *second = NULL, *none = NULL;
  char *json = NULL, *id = sandbox_box_id(box);
  struct text out[2] = {{0}, {0}};
  int exit_code = 77;
  WORKS(sandbox_get(runtime, id, &second, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_get(runtime, "nobody", &none, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, "{}", &none, &err));
  WORKS(sandbox_list_info(runtime, &json, &err));
  sandbox_free_string(json);
  WORKS(sandbox_box_info(box, &json, &err));
  sandbox_free_string(json);
  WORKS(sandbox_box_metrics(box, &json, &err));
  sandbox_free_string(json);
  WORKS(sandbox_runtime_metrics(runtime, &json, &err));
  sandbox_free_string(json);
  WORKS(sandbox_execute(box, "sh", "[\"-c\",\"echo a; printf '\\\\000' >&2\"]", collect, out, &exit_code, &err));
  free(out[0].text);
  free(out[1].text);
  FAILS(SANDBOX_EXECUTION, sandbox_execute(box, "no-such-command", NULL, NULL, NULL, &exit_code, &err));
  sandbox_box_free(box);
  WORKS(sandbox_get(runtime, id, &box, &err));
  sandbox_free_string(id);
  sandbox_runtime_free(runtime); /* and with it box and second */
}

int main(void) {
  for (int i = 0; i < 5; i++) /* until the threads and buffers of the process are there */
    round_trip();
  size_t before = __sanitizer_get_current_allocated_bytes();
  for (int i = 0; i < ROUNDS; i++)
    round_trip();
  size_t handles = 4 * (size_t)ROUNDS, left = __sanitizer_get_current_allocated_bytes() - before;
  CHECK(left >= handles);
  CHECK(left < handles + 16 * 1024); /* a thread or two more of Go's */
  return 0;
}
