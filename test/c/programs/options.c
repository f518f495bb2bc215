/* The box options document: what is refused, and with which words. */
#include "check.h"

static CSandboxRuntime *runtime;

/* refused: no box is made from the document, and the message begins as the contract says. */
static void refused(const char *doc, const char *says) {
  CBoxHandle *box = (CBoxHandle *)&err;
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, doc, &box, &err));
  CHECK(box == NULL);
  CHECK(strncmp(last_message, "invalid box options JSON:", 25) == 0);
  SAYS(says);
}

/* One member of an otherwise good document. */
static void refused_with(const char *member, const char *says) {
  char more[512];
  snprintf(more, sizeof more, ",%s", member);
  refused(options_with(more), says);
}

static void refused_length(size_t n, char fill) {
  char *doc = (char *)malloc(n + 1);
  CHECK(doc);
  memset(doc, fill, n);
  doc[n] = 0;
  refused(doc, "");
  free(doc);
}

int main(void) {
  runtime = new_runtime();

  refused("", "");
  refused("{", "");
  refused("nonsense", "");
  refused("[]", "");
  refused("null", "");
  refused("{\"rootfs\":\xff}", "");
  refused_length(100 * 1000 * 1000, '[');
  refused_length(100 * 1000 * 1000, ' ');

  char truncated[8192];
  const char *whole = options_with("");
  for (size_t n = 0; n < strlen(whole); n++) {
    memcpy(truncated, whole, n);
    truncated[n] = 0;
    refused(truncated, "");
  }
  char trailing[8192];
  snprintf(trailing, sizeof trailing, "%s{}", whole);
  refused(trailing, "");

  /* All that is missing, at once. */
  refused("{}", "rootfs");
  SAYS("env"), SAYS("volumes"), SAYS("network"), SAYS("ports");
  refused("{\"rootfs\":{\"Image\":\"i\"},\"env\":[],\"network\":\"Isolated\"}", "volumes");
  SAYS("ports");

  refused_with("\"colour\":1", "colour");
  refused_with("\"CPUS\":1", "CPUS");
  refused_with("\"cpus\":1", "cpus"); /* twice */
  refused_with("\"disk_size_gb\":\"1\"", "disk_size_gb");
  refused_with("\"disk_size_gb\":0", "disk_size_gb");
  refused_with("\"auto_remove\":1", "auto_remove");
  refused_with("\"working_dir\":\"relative\"", "working_dir");
  refused_with("\"working_dir\":\"/a/../b\"", "working_dir");

  const char *form = "{\"rootfs\":%s,\"env\":%s,\"volumes\":%s,\"network\":%s,\"ports\":%s,\"cpus\":%s,\"memory_mib\":%s}";
  const char *good[] = {"{\"Image\":\"i\"}", "[]", "[]", "\"Isolated\"", "[]", "1", "64"};
  const struct {
    int member;
    const char *value, *says;
  } bad[] = {
      {0, "{}", "rootfs"},
      {0, "\"i\"", "rootfs"},
      {0, "{\"Image\":\"i\",\"RootfsPath\":\"/x\"}", "rootfs"},
      {0, "{\"RootfsPath\":\"x\"}", "rootfs"},
      {0, "{\"RootfsPath\":\"/\"}", "rootfs"},
      {0, "{\"image\":\"i\"}", "rootfs"},
      {1, "[[\"A\"]]", "env"},
      {1, "[\"A=b\"]", "env"},
      {1, "[[\"A=\",\"b\"]]", "env"},
      {1, "[[\"A\",\"\\u0000\"]]", "env"},
      {2, "{}", "volumes"},
      {2, "[{\"guest_path\":\"/g\"}]", "host_path"},
      {2, "[{\"host_path\":\"h\",\"guest_path\":\"/g\"}]", "host_path"},
      {3, "\"Host\"", "network"},
      {3, "1", "network"},
      {4, "[{\"guest_port\":70000}]", "guest_port"},
      {4, "[{\"guest_port\":1,\"protocol\":\"tcp\"}]", "protocol"},
      {5, "0", "cpus"},
      {5, "-1", "cpus"},
      {5, "1.5", "cpus"},
      {5, "99999999999999999999", "cpus"},
      {6, "15", "memory_mib"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const char *v[7];
    char doc[1024];
    memcpy(v, good, sizeof v);
    v[bad[i].member] = bad[i].value;
    snprintf(doc, sizeof doc, form, v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
    refused(doc, bad[i].says);
  }

  /* A name that is not allowed is not an error of the document. */
  const char *names[] = {"", "a b", "-a", "box_a", "exec_a", "a/b", "\xff"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    CBoxHandle *box = (CBoxHandle *)&err;
    FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_named_box(runtime, names[i], options_with(""), &box, &err));
    SAYS("name");
    CHECK(box == NULL && !strstr(last_message, "JSON"));
  }

  /* Neither is more than the host has. */
  char doc[1024];
  CBoxHandle *box = (CBoxHandle *)&err;
  snprintf(doc, sizeof doc, form, good[0], "[]", "[]", good[3], "[]", "100000", "64");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, doc, &box, &err)), SAYS("cpus");
  CHECK(box == NULL && !strstr(last_message, "JSON"));
  snprintf(doc, sizeof doc, form, "{\"RootfsPath\":\"/no/such/directory\"}", "[]", "[]", good[3], "[]", "1", "64");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, doc, &box, &err)), SAYS("/no/such/directory");
  snprintf(doc, sizeof doc, form, "{\"RootfsPath\":\"/etc/passwd\"}", "[]", "[]", good[3], "[]", "1", "64");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, doc, &box, &err)), SAYS("/etc/passwd");
  snprintf(doc, sizeof doc, form, "{\"Image\":\"127.0.0.1:1/no/such:image\"}", "[]", "[]", good[3], "[]", "1", "64");
  FAILS(SANDBOX_IMAGE, sandbox_create_box(runtime, doc, &box, &err)), SAYS("127.0.0.1:1/no/such:image");
  snprintf(doc, sizeof doc, form, good[0], "[]", "[{\"host_path\":\"/no/such/directory\",\"guest_path\":\"/srv\"}]", good[3], "[]", "1", "64");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, doc, &box, &err)), SAYS("/no/such/directory");
  snprintf(doc, sizeof doc, form, good[0], "[]", "[]", "\"None\"", "[{\"host_port\":8080,\"guest_port\":80}]", "1", "64");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_create_box(runtime, doc, &box, &err)), SAYS("ports");

  char *json = NULL;
  WORKS(sandbox_list_info(runtime, &json, &err));
  CHECK(strcmp(json, "[]") == 0);
  sandbox_free_string(json);
  sandbox_runtime_free(runtime);
  return 0;
}
