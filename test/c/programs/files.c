/* Copies between the host and a box, and images of the home. */
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static CBoxHandle *box;

/* What a callback was told. */
struct told {
  int calls;
  long long done;
  int bad;
};

static void tell(const SandboxProgress *p, void *to) {
  struct told *t = to;
  t->calls++;
  t->bad += !p->stage || !*p->stage || p->part < 1 || p->part > p->parts || p->done < 0;
  t->done = p->done;
}

static int sh(const char *script) {
  char args[1024];
  int exit_code = 77;
  snprintf(args, sizeof args, "[\"-c\",\"%s\"]", script);
  WORKS(sandbox_execute(box, "sh", args, NULL, NULL, &exit_code, &err));
  return exit_code;
}

static void write_file(const char *path, size_t size, mode_t mode) {
  FILE *f = fopen(path, "w");
  CHECK(f);
  while (size--) fputc('x', f);
  CHECK(fclose(f) == 0 && chmod(path, mode) == 0);
}

static long long size_of(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 ? (long long)st.st_size : -1;
}

static void copies(void) {
  struct told told = {0, 0, 0};
  CHECK(mkdir("tree", 0755) == 0 && mkdir("tree/sub", 0700) == 0);
  write_file("tree/sub/file", 5, 0640);
  write_file("big", 300000, 0755);

  WORKS(sandbox_copy_in(box, "big", "/tmp/", NULL, tell, &told, &err));
  CHECK(told.calls > 0 && told.done == 300000 && told.bad == 0);
  CHECK(sh("[ $(stat -c %a-%s-%u /tmp/big) = 755-300000-0 ]") == 0);
  WORKS(sandbox_copy_in(box, "tree", "/srv/made/here", NULL, NULL, NULL, &err));
  CHECK(sh("[ $(stat -c %a /srv/made/here/sub/file) = 640 ]") == 0);

  memset(&told, 0, sizeof told);
  WORKS(sandbox_copy_out(box, "/tmp/big", "back", NULL, tell, &told, &err));
  CHECK(size_of("back") == 300000 && told.calls > 0 && told.done >= 300000 && told.bad == 0);
  WORKS(sandbox_copy_out(box, "/srv/made/here", ".", NULL, NULL, NULL, &err));
  CHECK(size_of("here/sub/file") == 5);

  CHECK(sh("mkdir -m 777 /open; mkdir -m 700 /closed; echo x > /closed/file") == 0);
  WORKS(sandbox_copy_in(box, "tree", "/open/here", "1000:7", NULL, NULL, &err));
  CHECK(sh("[ $(stat -c %u-%g /open/here/sub/file) = 1000-7 ]") == 0);
  FAILS(SANDBOX_PERMISSION_DENIED, sandbox_copy_in(box, "big", "/closed/", "1000", NULL, NULL, &err));
  FAILS(SANDBOX_PERMISSION_DENIED, sandbox_copy_out(box, "/closed/file", "x", "1000", NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_copy_in(box, "big", "/open/", "nosuchuser", NULL, NULL, &err));

  FAILS(SANDBOX_NOT_FOUND, sandbox_copy_in(box, "nowhere", "/tmp/", NULL, tell, &told, &err));
  SAYS("nowhere");
  FAILS(SANDBOX_NOT_FOUND, sandbox_copy_out(box, "/nowhere", "x", NULL, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_copy_in(box, "/dev/null", "/tmp/", NULL, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_copy_in(box, "big", "relative", NULL, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_copy_in(box, NULL, "/tmp/", NULL, NULL, NULL, &err));
  SAYS("host_path");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_copy_out(box, NULL, "x", NULL, NULL, NULL, &err));
  SAYS("box_path");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_copy_in(NULL, "big", "/tmp/", NULL, NULL, NULL, &err));
}

/* Whether a call gave a document that has all of these texts; releases it. */
static int has(char *doc, const char *a, const char *b) {
  int all = doc && strstr(doc, a) && strstr(doc, b);
  if (!all) printf("got %s\n", doc ? doc : "NULL");
  sandbox_free_string(doc);
  return all;
}

static void in_place(void) {
  char *out = NULL;
  WORKS(sandbox_file_make_dir(box, "/d/e", 02770, NULL, &out, &err));
  CHECK(has(out, "\"created\":true", "\"mode\":\"2770\""));
  WORKS(sandbox_file_make_dir(box, "/d", -1, NULL, &out, &err));
  CHECK(has(out, "\"created\":false", "\"mode\":\"0755\""));
  CHECK(sh("echo 1 > /d/f; chown 1000:7 /d/f") == 0);
  WORKS(sandbox_file_stat(box, "/d/f", "1000", &out, &err));
  CHECK(has(out, "\"uid\":1000", "\"type\":\"file\""));
  WORKS(sandbox_file_move(box, "/d/f", "/d/e/g", NULL, &out, &err));
  CHECK(has(out, "\"path\":\"/d/e/g\"", "\"size\":2"));
  WORKS(sandbox_file_list(box, "/d", 2, 0, NULL, NULL, &out, &err));
  CHECK(has(out, "/d/e/g", "\"next_page_token\":null"));
  WORKS(sandbox_file_list(box, "/d", 2, 1, NULL, NULL, &out, &err));
  CHECK(has(out, "\"next_page_token\":\"ZQ\"", "/d/e"));
  WORKS(sandbox_file_list(box, "/d", 2, 1, "ZQ", NULL, &out, &err));
  CHECK(has(out, "/d/e/g", "\"next_page_token\":null"));

  FAILS(SANDBOX_PERMISSION_DENIED, sandbox_file_list(box, "/d/e", 0, 0, NULL, "1000", &out, &err));
  CHECK(!out);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_list(box, "/d", -1, 0, NULL, NULL, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_list(box, "/d", 0, 0, "?", NULL, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_make_dir(box, "/x", 010000, NULL, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_stat(box, "/d/../d", NULL, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_stat(box, "/d/\xff", NULL, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_stat(box, NULL, NULL, &out, &err));
  SAYS("path");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_stat(box, "/d", NULL, NULL, &err));
  SAYS("out_json");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_move(box, "/d", NULL, NULL, &out, &err));
  SAYS("to");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_remove(NULL, "/d", 0, NULL, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_file_remove(box, "/d", 0, NULL, &out, &err));
  WORKS(sandbox_file_remove(box, "/d", 1, NULL, &out, &err));
  CHECK(has(out, "\"removed\":3", "\"path\":\"/d\""));
  FAILS(SANDBOX_NOT_FOUND, sandbox_file_stat(box, "/d", NULL, &out, &err));
}

static void watches(void) {
  CSandboxWatch *watch = NULL;
  char *out = NULL;
  CHECK(sh("mkdir /w") == 0);
  WORKS(sandbox_watch_start(box, "/w", 1, NULL, &watch, &err));
  FAILS(SANDBOX_TIMEOUT, sandbox_watch_read(watch, 0, &out, &err));
  CHECK(!out);
  struct pollfd ready = {-1, POLLIN, 0};
  WORKS(sandbox_watch_fd(watch, &ready.fd, &err));
  CHECK(poll(&ready, 1, 0) == 0);
  CHECK(sh("mkfifo /w/p; rm /w/p; rmdir /w") == 0);
  CHECK(poll(&ready, 1, 30000) == 1 && ready.revents == POLLIN);
  WORKS(sandbox_watch_read(watch, -1, &out, &err));
  CHECK(has(out, "\"type\":\"create\"", "\"path\":\"/w/p\""));
  WORKS(sandbox_watch_read(watch, 30, &out, &err));
  CHECK(has(out, "\"type\":\"remove\"", "\"path\":\"/w/p\""));
  WORKS(sandbox_watch_read(watch, 30, &out, &err));
  CHECK(has(out, "\"type\":\"end\"", "\"reason\":\"removed\""));
  FAILS(SANDBOX_INVALID_STATE, sandbox_watch_read(watch, 30, &out, &err));
  CHECK(poll(&ready, 1, 0) == 1);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_watch_read(watch, -2, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_watch_read(watch, 0, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_watch_fd(watch, NULL, &err));
  sandbox_watch_free(watch);
  sandbox_watch_free(watch);
  sandbox_watch_free(NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_watch_read(watch, 0, &out, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_watch_fd(watch, &ready.fd, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_watch_start(box, "/nosuch", 0, NULL, &watch, &err));
  CHECK(!watch);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_watch_start(box, NULL, 0, NULL, &watch, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_watch_start(box, "/", 0, NULL, NULL, &err));
}

static void images(CSandboxRuntime *runtime) {
  struct told told = {0, 0, 0};
  char *list = NULL, *made = (char *)1;
  WORKS(sandbox_image_list(runtime, &list, &err));
  CHECK(strcmp(list, "[]") == 0);
  sandbox_free_string(list);
  WORKS(sandbox_image_import(runtime, "mine:1", "tree", tell, &told, &made, &err));
  CHECK(strstr(made, "\"mine:1\"") && (told.calls > 0 || server()) && told.bad == 0);
  sandbox_free_string(made);
  WORKS(sandbox_image_import(runtime, "mine:2", "tree", NULL, NULL, NULL, &err));
  WORKS(sandbox_image_list(runtime, &list, &err));
  CHECK(strstr(list, "\"mine:1\"") && strstr(list, "\"mine:2\""));
  sandbox_free_string(list);

  told.calls = 0;
  WORKS(sandbox_image_export(runtime, "mine:1", "mine.tar", NULL, tell, &told, &err));
  CHECK((told.calls > 0 || server()) && told.bad == 0);
  WORKS(sandbox_image_import(runtime, "mine:3", "mine.tar", NULL, NULL, NULL, &err));
  WORKS(sandbox_image_export(runtime, "mine:3", "mine.tar", "gzip", NULL, NULL, &err));
  WORKS(sandbox_image_remove(runtime, "mine:3", 0, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_image_export(runtime, "mine:3", "mine.tar", NULL, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_export(runtime, "mine:1", "mine.tar", "xz", NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_export(runtime, "mine:1", NULL, NULL, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_export(runtime, NULL, "mine.tar", NULL, NULL, NULL, &err));
  FAILS(SANDBOX_NETWORK, sandbox_image_push(runtime, "mine:1", "127.0.0.1:1/mine:1", NULL, tell, &told, &made, &err));
  CHECK(made == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_push(runtime, "mine:1", NULL, NULL, NULL, NULL, NULL, &err));
  SAYS("names no registry");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_push(runtime, NULL, NULL, NULL, NULL, NULL, NULL, &err));
  CHECK(unlink("mine.tar") == 0);

  WORKS(sandbox_image_remove(runtime, "mine:1", 0, &err));
  FAILS(SANDBOX_NOT_FOUND, sandbox_image_remove(runtime, "mine:1", 0, &err));
  SAYS("mine:1");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_remove(runtime, NULL, 0, &err));
  CBoxHandle *user = NULL;
  WORKS(sandbox_create_box(runtime,
                           "{\"rootfs\":{\"Image\":\"mine:2\"},\"env\":[],\"volumes\":[],\"network\":\"None\",\"ports\":[]}",
                           &user, &err));
  FAILS(SANDBOX_INVALID_STATE, sandbox_image_remove(runtime, "mine:2", 0, &err));
  WORKS(sandbox_image_remove(runtime, "mine:2", 1, &err));
  sandbox_box_free(user);

  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_import(runtime, NULL, "tree", NULL, NULL, &made, &err));
  CHECK(made == NULL);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_import(runtime, "x", NULL, NULL, NULL, &made, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_import(runtime, "x", "nowhere", NULL, NULL, &made, &err));
  FAILS(SANDBOX_NETWORK, sandbox_image_pull(runtime, "127.0.0.1:1/none:1", tell, &told, &made, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_pull(runtime, NULL, NULL, NULL, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_list(runtime, NULL, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_image_list(NULL, &list, &err));
}

int main(void) {
  char dir[] = "/tmp/files-XXXXXX";
  CHECK(mkdtemp(dir) && chdir(dir) == 0);
  CSandboxRuntime *runtime = new_runtime();
  box = new_box(runtime);
  copies();
  in_place();
  watches();
  images(runtime);
  sandbox_box_free(box);
  sandbox_runtime_free(runtime);
  char remove[64];
  snprintf(remove, sizeof remove, "rm -r %s", dir);
  return system(remove);
}
