/* What the examples share: the root file system that the first argument names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sandbox.h>

/* Options of a box on the directory argv[1], or on the image "default". */
static inline const char *options_from(int argc, char **argv, const char *auto_remove) {
  static char options[4096];
  char rootfs[2048] = "{\"Image\": \"default\"}";
  if (argc > 1)
    snprintf(rootfs, sizeof rootfs, "{\"RootfsPath\": \"%s\"}", argv[1]);
  snprintf(options, sizeof options,
           "{\"rootfs\": %s, \"env\": [], \"volumes\": [], \"network\": \"Isolated\", \"ports\": [],"
           " \"cpus\": 1, \"memory_mib\": 128, \"auto_remove\": %s}",
           rootfs, auto_remove);
  return options;
}

/* Ends the program, saying why, if a call failed. */
static inline void must(SandboxErrorCode code, CSandboxError *err) {
  if (code == SANDBOX_OK)
    return;
  fprintf(stderr, "error %d: %s\n", (int)code, err->message);
  sandbox_error_free(err);
  exit(1);
}
