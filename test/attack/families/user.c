// class: an unprivileged user of the host
// order: 16
// where: host
// Another user of the host reaches nothing of a home, of its shim and of its boxes.
#include "attack.h"
#include <dirent.h>
#include <grp.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/un.h>

static char path[4096];

// below returns the path of text below the home.
static const char *below(const struct attack *a) {
  snprintf(path, sizeof path, "%s/%s", getenv("BOARD_HOME"), a->text);
  return path;
}

// of returns the path of text in /proc for the process that args name.
static pid_t process(const struct attack *a) { return atoi(getenv(a->args[0] ? "BOARD_INIT" : "BOARD_SHIM")); }

static const char *of(const struct attack *a) {
  snprintf(path, sizeof path, "/proc/%d/%s", process(a), a->text);
  return path;
}

static enum verdict read_home(const struct attack *a) { return refused(open(below(a), O_RDONLY | O_CLOEXEC)); }

static enum verdict wrote_home(const struct attack *a) { return refused(open(below(a), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)); }

static enum verdict removed(const struct attack *a) { return refused(unlink(below(a))); }

static enum verdict renamed(const struct attack *a) { return refused(rename(below(a), "/tmp/stolen")); }

static enum verdict reached(const struct attack *a) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  snprintf(to.sun_path, sizeof to.sun_path, "%s", below(a));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return refused(fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof to));
}

static enum verdict read_proc(const struct attack *a) { return refused(open(of(a), O_RDONLY | O_CLOEXEC)); }

static enum verdict wrote_proc(const struct attack *a) { return refused(open(of(a), O_WRONLY | O_CLOEXEC)); }

static enum verdict listed(const struct attack *a) { return refused(opendir(of(a)) ? 0 : -1); }

static enum verdict joined(const struct attack *a) {
  int fd = open(of(a), O_RDONLY | O_CLOEXEC);
  return refused(fd < 0 ? -1 : setns(fd, 0));
}

static enum verdict signalled(const struct attack *a) { return refused(kill(process(a), (int)a->args[1])); }

static enum verdict traced(const struct attack *a) { return refused(ptrace(PTRACE_SEIZE, process(a), 0, 0)); }

static enum verdict stolen(const struct attack *a) {
  int fd = (int)syscall(SYS_pidfd_open, process(a), 0);
  return refused(fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 3, 0));
}

static enum verdict copied(const struct attack *a) {
  char mine[8];
  struct iovec here = {mine, sizeof mine}, there = {(void *)0x400000, sizeof mine};
  return refused(process_vm_readv(process(a), &here, 1, &there, 1, 0));
}

static enum verdict grouped(const struct attack *a) {
  char text[64];
  DIR *dir = opendir(a->text);
  if (!dir) return told(HELD, "this host has none");
  snprintf(path, sizeof path, "%s/cgroup.procs", a->text);
  snprintf(text, sizeof text, "%d", getpid());
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  return refused(fd < 0 ? -1 : write(fd, text, strlen(text)));
}

#define HOME(name) {"read " name, read_home, name}, {"write " name, wrote_home, name}, {"remove " name, removed, name}, {"take " name, renamed, name}
#define BOTH(name, run, file) {name " of the shim", run, file, {0}}, {name " of an init", run, file, {1}}

static const struct attack all[] = {
    HOME("records"), HOME("boxes"), HOME("engine"), HOME("images"), HOME("layers"), HOME("config.toml"), HOME("../sentinel"),
    {"put a record", wrote_home, "records/box_aaaaaaaaaaaaaaaaaaaa.json"},
    {"put a layer", wrote_home, "layers/evil"},
    {"put a socket's name", wrote_home, "engine/evil"},
    {"reach the shim", reached, "engine/shim.sock"},
    {"reach the daemon", reached, "sandbox.sock"},
    BOTH("read the memory", read_proc, "mem"), BOTH("read the environment", read_proc, "environ"), BOTH("read the root", read_proc, "root/etc/passwd"),
    BOTH("read the map", read_proc, "maps"), BOTH("read the stack", read_proc, "stack"), BOTH("read the system call", read_proc, "syscall"),
    BOTH("write the memory", wrote_proc, "mem"), BOTH("write the oom score", wrote_proc, "oom_score_adj"), BOTH("write the map of users", wrote_proc, "uid_map"),
    BOTH("list the descriptors", listed, "fd"), BOTH("list the map", listed, "map_files"), BOTH("list the work", listed, "cwd"),
    BOTH("join the mounts", joined, "ns/mnt"), BOTH("join the users", joined, "ns/user"), BOTH("join the network", joined, "ns/net"), BOTH("join the processes", joined, "ns/pid"),
    {"kill the shim", signalled, 0, {0, SIGKILL}},
    {"kill an init", signalled, 0, {1, SIGKILL}},
    {"stop the shim", signalled, 0, {0, SIGSTOP}},
    {"stop an init", signalled, 0, {1, SIGSTOP}},
    BOTH("trace a thread", traced, 0), BOTH("take a descriptor", stolen, 0), BOTH("copy the memory", copied, 0),
    {"join the cgroups of boxes: memory", grouped, "/sys/fs/cgroup/memory/sandbox"},
    {"join the cgroups of boxes: pids", grouped, "/sys/fs/cgroup/pids/sandbox"},
    {"join the cgroups of boxes: unified", grouped, "/sys/fs/cgroup/unified/sandbox"},
    {"join the cgroups of boxes: cgroup2", grouped, "/sys/fs/cgroup/sandbox"},
};

int main(void) {
  if (getuid() == 0) return 1;
  return ATTACK_ALL(all);
}
