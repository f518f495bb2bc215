// class: namespaces and nesting
// order: 1
// A box makes no namespaces, joins none, and learns of none but its own.
#include "attack.h"
#include <linux/fs.h>
#include <linux/nsfs.h>
#include <linux/sched.h>

static enum verdict cloned(const struct attack *a) {
  long made = syscall(SYS_clone, a->args[0] | SIGCHLD, 0, 0, 0, 0);
  if (made == 0) _exit(0);
  return refused(made);
}

static enum verdict cloned3(const struct attack *a) {
  struct clone_args args = {.flags = (uint64_t)a->args[0], .exit_signal = SIGCHLD};
  long made = syscall(SYS_clone3, &args, sizeof args);
  if (made == 0) _exit(0);
  return refused(made);
}

static enum verdict joined(const struct attack *a) {
  int fd = open(a->text, O_RDONLY | O_CLOEXEC);
  return refused(fd < 0 ? -1 : setns(fd, 0));
}

static enum verdict joined_process(const struct attack *a) {
  int fd = (int)syscall(SYS_pidfd_open, a->args[0] ? a->args[0] : getppid(), 0);
  return refused(fd < 0 ? -1 : setns(fd, (int)a->args[1]));
}

static enum verdict asked(const struct attack *a) {
  int fd = open(a->text, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? told(NOT_RUN, "no %s", a->text) : refused(ioctl(fd, (unsigned long)a->args[0]));
}

// projected maps projects, which everyone may, to give a file to one of the host's.
static enum verdict projected(const struct attack *a) {
  struct attack map = {a->name, 0, "/proc/self/projid_map", {(long)"0 0 4294967295\n"}};
  struct fsxattr attr = {0};
  given(&map);
  int fd = open("/tmp/project", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return told(NOT_RUN, "no file");
  if (ioctl(fd, FS_IOC_FSGETXATTR, &attr)) return told(HELD, "files have no projects");
  attr.fsx_projid = 7;
  ioctl(fd, FS_IOC_FSSETXATTR, &attr);
  if (ioctl(fd, FS_IOC_FSGETXATTR, &attr) == 0 && attr.fsx_projid == 7) return told(GOT, "it is project 7's");
  return told(HELD, "the file's project stays");
}

// climbed leaves a directory that it has made its root by the descriptor of one outside.
static enum verdict climbed(const struct attack *a) {
  struct stat before, after;
  (void)a;
  mkdir("/tmp/jail", 0755);
  int above = open("/", O_RDONLY | O_DIRECTORY);
  if (above < 0 || stat("/", &before)) return told(NOT_RUN, "no root");
  if (chroot("/tmp/jail")) return refused(-1);
  if (fchdir(above)) return refused(-1);
  for (int i = 0; i < 64; i++) (void)!chdir("..");
  if (stat(".", &after)) return refused(-1);
  if (after.st_ino == before.st_ino && after.st_dev == before.st_dev) return told(HELD, "it ends at the box's own root");
  return told(GOT, "another root");
}

#define FLAGS(how, run)                                                                                          \
  {how " user", run, 0, {CLONE_NEWUSER}}, {how " mount", run, 0, {CLONE_NEWNS}}, {how " pid", run, 0, {CLONE_NEWPID}}, \
      {how " network", run, 0, {CLONE_NEWNET}}, {how " ipc", run, 0, {CLONE_NEWIPC}}, {how " uts", run, 0, {CLONE_NEWUTS}}, \
      {how " cgroup", run, 0, {CLONE_NEWCGROUP}}, {how " user and mount", run, 0, {CLONE_NEWUSER | CLONE_NEWNS}}, \
      {how " user and network", run, 0, {CLONE_NEWUSER | CLONE_NEWNET}}, {how " user and pid", run, 0, {CLONE_NEWUSER | CLONE_NEWPID}}

#define EACH(how, run, at)                                                                                       \
  {how " user", run, at "user"}, {how " mount", run, at "mnt"}, {how " pid", run, at "pid"}, {how " network", run, at "net"}, \
      {how " ipc", run, at "ipc"}, {how " uts", run, at "uts"}, {how " cgroup", run, at "cgroup"}, {how " time", run, at "time"}

static enum verdict unshared(const struct attack *a) { return refused(syscall(SYS_unshare, a->args[0])); }

static const struct attack all[] = {
    FLAGS("unshare", unshared),
    {"unshare time", unshared, 0, {CLONE_NEWTIME}},
    FLAGS("clone", cloned),
    FLAGS("clone3", cloned3),
    {"clone3 time", cloned3, 0, {CLONE_NEWTIME}},
    EACH("join its own", joined, "/proc/self/ns/"),
    EACH("join init's", joined, "/proc/1/ns/"),
    {"join init's by a pidfd: user", joined_process, 0, {1, CLONE_NEWUSER}},
    {"join init's by a pidfd: mount", joined_process, 0, {1, CLONE_NEWNS}},
    {"join init's by a pidfd: pid", joined_process, 0, {1, CLONE_NEWPID}},
    {"join init's by a pidfd: network", joined_process, 0, {1, CLONE_NEWNET}},
    {"join a parent's by a pidfd: mount", joined_process, 0, {0, CLONE_NEWNS}},
    {"ask for the parent of the user namespace", asked, "/proc/self/ns/user", {NS_GET_PARENT}},
    {"ask for the owner of the user namespace", asked, "/proc/self/ns/user", {NS_GET_USERNS}},
    {"ask for the parent of the pid namespace", asked, "/proc/self/ns/pid", {NS_GET_PARENT}},
    {"map users of its own", given, "/proc/self/uid_map", {(long)"0 0 1\n"}},
    {"map groups of its own", given, "/proc/self/gid_map", {(long)"0 0 1\n"}},
    {"give a file to another project", projected},
    {"forbid setgroups", given, "/proc/self/setgroups", {(long)"deny"}},
    {"map users of init", given, "/proc/1/uid_map", {(long)"0 0 1\n"}},
    {"set the clock of a namespace", given, "/proc/self/timens_offsets", {(long)"monotonic 1 0\n"}},
    {"climb out of a chroot", climbed},
};

int main(void) { return ATTACK_ALL(all); }
