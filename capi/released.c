#include "glue.h"

/* The addresses of released handles, oldest first from next on. They stay taken, so that the allocator
 * gives none of them to a new handle; and they stand here, and not in Go's memory, so that a leak checker
 * of the host's finds who keeps them. */
static void *released[RELEASED_HANDLES];
static unsigned next;

void *keep_released(void *address) {
  void *oldest = released[next];
  released[next] = address;
  next = (next + 1) % RELEASED_HANDLES;
  return oldest;
}
