/* Connections to ports of a box, which has no network. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static CBoxHandle *listening(CSandboxRuntime *runtime) {
  CBoxHandle *box = new_box(runtime);
  int exit_code = -1;
  WORKS(sandbox_execute(box, "sh",
                        "[\"-c\", \"nc -ll -p 8080 -e cat </dev/null >/dev/null 2>&1 & until netstat -ltn | grep -q :8080; do :; done\"]",
                        NULL, NULL, &exit_code, &err));
  CHECK(exit_code == 0);
  return box;
}

/* Reads until the end, and returns how much came; -1 if it broke off. */
static long rest(int fd) {
  static char buffer[65536];
  long all = 0, n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) all += n;
  return n < 0 && errno != ECONNRESET ? -1 : all;
}

static void connects(CBoxHandle *box) {
  char back[5] = "";
  int fd = -1, type = 0;
  socklen_t size = sizeof type;
  WORKS(sandbox_box_connect(box, 8080, &fd, &err));
  CHECK(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM);
  CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && !(fcntl(fd, F_GETFL) & O_NONBLOCK));
  CHECK(write(fd, "ping", 4) == 4 && read(fd, back, 4) == 4 && strcmp(back, "ping") == 0);
  struct pollfd quiet = {fd, POLLIN, 0};
  CHECK(poll(&quiet, 1, 0) == 0);
  CHECK(write(fd, "last", 4) == 4 && shutdown(fd, SHUT_WR) == 0); /* each direction ends for itself */
  CHECK(rest(fd) == 4 && close(fd) == 0);

  int many[20];
  for (int i = 0; i < 20; i++) WORKS(sandbox_box_connect(box, 8080, &many[i], &err));
  for (int i = 0; i < 20; i++) CHECK(write(many[i], "x", 1) == 1);
  for (int i = 0; i < 20; i++) CHECK(read(many[i], back, 1) == 1 && close(many[i]) == 0);
}

static void refused(CBoxHandle *box) {
  char *link = NULL;
  int fd = 7;
  FAILS(SANDBOX_NETWORK, sandbox_box_connect(box, 1, &fd, &err)), SAYS("port 1");
  CHECK(fd == -1);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_connect(box, 0, &fd, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_connect(box, 65536, &fd, &err));
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_connect(box, 8080, NULL, &err)), SAYS("out_fd");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_connect(NULL, 8080, &fd, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_share(NULL, 8080, 0, &link, &err)), SAYS("box");
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_share(box, 8080, 0, NULL, &err)), SAYS("out");
  FAILS(server() ? SANDBOX_INVALID_ARGUMENT : SANDBOX_UNSUPPORTED, sandbox_box_share(box, 8080, -1, &link, &err));
  CHECK(!link);
}

int main(void) {
  CSandboxRuntime *runtime = new_runtime();
  CBoxHandle *box = listening(runtime);
  int of_box = -1, of_runtime = -1;
  connects(box);
  refused(box);
  WORKS(sandbox_box_connect(box, 8080, &of_box, &err));
  WORKS(sandbox_stop_box(box, &err)); /* it has auto_remove */
  CHECK(rest(of_box) == 0 && close(of_box) == 0);
  FAILS(SANDBOX_NOT_FOUND, sandbox_box_connect(box, 8080, &of_box, &err));
  sandbox_box_free(box);

  box = listening(runtime);
  WORKS(sandbox_box_connect(box, 8080, &of_runtime, &err));
  sandbox_runtime_free(runtime);
  CHECK(rest(of_runtime) == 0 && close(of_runtime) == 0);
  FAILS(SANDBOX_INVALID_ARGUMENT, sandbox_box_connect(box, 8080, &of_runtime, &err));
  return 0;
}
