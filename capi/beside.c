#define _GNU_SOURCE
#include <dlfcn.h>

#include "glue.h"

const char *library_file(void) {
  static const char here;
  Dl_info info;
  return dladdr(&here, &info) ? info.dli_fname : 0;
}
