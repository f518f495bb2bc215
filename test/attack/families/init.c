// class: PID 1
// order: 4
// The box's init can't be traced, read, written to, signalled to death or robbed of a descriptor.
#include "attack.h"
#include <linux/kcmp.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/un.h>

static enum verdict traced(const struct attack *a) { return refused(ptrace((int)a->args[0], 1, 0, 0)); }

static enum verdict stolen(const struct attack *a) {
  int fd = (int)syscall(SYS_pidfd_open, 1, 0);
  return refused(fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, a->args[0], 0));
}

static enum verdict copied(const struct attack *a) {
  char mine[64] = "";
  struct iovec here = {mine, sizeof mine}, there = {(void *)0x400000, sizeof mine};
  return refused(syscall(a->args[0], 1, &here, 1, &there, 1, 0));
}

static enum verdict advised(const struct attack *a) {
  struct iovec there = {(void *)0x400000, 4096};
  int fd = (int)syscall(SYS_pidfd_open, 1, 0);
  return refused(fd < 0 ? -1 : syscall(SYS_process_madvise, fd, &there, 1, a->args[0], 0));
}

static enum verdict released(const struct attack *a) {
  (void)a;
  int fd = (int)syscall(SYS_pidfd_open, 1, 0);
  return refused(fd < 0 ? -1 : syscall(448, fd, 0));
}

static enum verdict limited(const struct attack *a) {
  struct rlimit one = {1, 1};
  return refused(syscall(SYS_prlimit64, 1, a->args[0], &one, 0));
}

static enum verdict linked(const struct attack *a) {
  char to[256];
  return refused(readlink(a->text, to, sizeof to));
}

// survived sends a signal that may be sent, and is to be ignored.
static enum verdict survived(const struct attack *a) {
  kill(1, (int)a->args[0]);
  usleep(20000);
  return kill(1, 0) ? told(GOT, "init is gone") : told(HELD, "init goes on");
}

static enum verdict queued(const struct attack *a) {
  siginfo_t info = {.si_code = SI_QUEUE};
  int fd = (int)syscall(SYS_pidfd_open, 1, 0);
  syscall(SYS_pidfd_send_signal, fd, a->args[0], &info, 0);
  syscall(SYS_rt_sigqueueinfo, 1, a->args[0], &info);
  syscall(SYS_tgkill, 1, 1, a->args[0]);
  usleep(20000);
  return kill(1, 0) ? told(GOT, "init is gone") : told(HELD, "init goes on");
}

// reached connects to each socket that the box sees in the abstract namespace and in files.
static enum verdict reached(const struct attack *a) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  socklen_t size = (socklen_t)(sizeof to.sun_family + strlen(a->text) + (a->args[0] ? 1 : 0));
  memcpy(to.sun_path + (a->args[0] ? 1 : 0), a->text, strlen(a->text));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return refused(fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, size));
}

static enum verdict scheduled(const struct attack *a) {
  (void)a;
  struct sched_param none = {0};
  return refused(sched_setscheduler(1, 5, &none));
}

// looked reads a byte of a file, which must fail.
static enum verdict looked(const struct attack *a) {
  char byte;
  int fd = open(a->text, O_RDONLY | O_CLOEXEC);
  return refused(fd < 0 ? -1 : read(fd, &byte, 1));
}

// set changes a setting of init, which must fail, unless init belongs to the box's root, as
// in the boxes of an ordinary user: then that root may do what it likes to its own box.
static enum verdict set(const struct attack *a) {
  struct stat of;
  enum verdict v = written(a);
  if (stat(a->text, &of) == 0 && of.st_uid == 0) return told(HELD, "the box's own");
  return v;
}

#define FILE_OF(name) {"read " name, looked, "/proc/1/" name}
#define SETTING(name) {"set " name, set, "/proc/1/" name}
#define CHANGE(name) {"write " name, written, "/proc/1/" name}
#define FD(n) {"take descriptor " #n, stolen, 0, {n}}, {"open descriptor " #n, opened, "/proc/1/fd/" #n, {O_RDONLY}}

static const struct attack all[] = {
    {"ptrace attach", traced, 0, {PTRACE_ATTACH}},
    {"ptrace seize", traced, 0, {PTRACE_SEIZE}},
    {"read its memory", copied, 0, {SYS_process_vm_readv}},
    {"write its memory", copied, 0, {SYS_process_vm_writev}},
    {"drop its pages", advised, 0, {21}},
    {"make its pages cold", advised, 0, {20}},
    {"release its memory", released},
    {"compare with it", call, 0, {SYS_kcmp, 1, 1, KCMP_FILES, 0, 0}},
    {"compare a descriptor with it", call, 0, {SYS_kcmp, 1, 1, KCMP_FILE, 3, 3}},
    {"move its pages", call, 0, {SYS_migrate_pages, 1, 0, 0, 0}},
    {"find its pages", call, 0, {SYS_move_pages, 1, 0, 0, 0, 0}},
    {"its robust list", call, 0, {SYS_get_robust_list, 1, (long)why, (long)why}},
    {"limit its descriptors", limited, 0, {RLIMIT_NOFILE}},
    {"limit its memory", limited, 0, {RLIMIT_AS}},
    {"limit its time", limited, 0, {RLIMIT_CPU}},
    {"limit its files", limited, 0, {RLIMIT_FSIZE}},
    {"limit its processes", limited, 0, {RLIMIT_NPROC}},
    {"idle it", scheduled},
    FILE_OF("mem"), FILE_OF("environ"), FILE_OF("maps"), FILE_OF("smaps"), FILE_OF("auxv"), FILE_OF("stack"), FILE_OF("pagemap"),
    FILE_OF("root/etc/passwd"), FILE_OF("cwd/etc/passwd"), FILE_OF("exe"), FILE_OF("ns/mnt"), FILE_OF("map_files/400000-401000"),
    FILE_OF("task/1/mem"), FILE_OF("task/1/environ"), FILE_OF("task/1/root/etc/passwd"),
    SETTING("oom_score_adj"), SETTING("oom_adj"), SETTING("comm"), SETTING("coredump_filter"), SETTING("clear_refs"), SETTING("autogroup"), SETTING("sched"),
    CHANGE("mem"), CHANGE("attr/current"), CHANGE("timerslack_ns"), CHANGE("uid_map"), CHANGE("exe"), CHANGE("setgroups"), CHANGE("loginuid"), CHANGE("attr/exec"),
    {"where its root is", linked, "/proc/1/root"},
    {"where it works", linked, "/proc/1/cwd"},
    {"where its program is", linked, "/proc/1/exe"},
    FD(0), FD(1), FD(2), FD(3), FD(4), FD(5), FD(6), FD(7), FD(8), FD(9), FD(10), FD(11), FD(12),
    {"kill it", survived, 0, {SIGKILL}},
    {"stop it", survived, 0, {SIGSTOP}},
    {"terminate it", survived, 0, {SIGTERM}},
    {"hang it up", survived, 0, {SIGHUP}},
    {"make it quit", survived, 0, {SIGQUIT}},
    {"abort it", survived, 0, {SIGABRT}},
    {"a fault in it", survived, 0, {SIGSEGV}},
    {"a bad call in it", survived, 0, {SIGSYS}},
    {"a pipe broken for it", survived, 0, {SIGPIPE}},
    {"its alarm", survived, 0, {SIGALRM}},
    {"its profile timer", survived, 0, {SIGPROF}},
    {"preempt its threads", survived, 0, {SIGURG}},
    {"queue a fault for it", queued, 0, {SIGSEGV}},
    {"queue a bus error for it", queued, 0, {SIGBUS}},
    {"queue a trap for it", queued, 0, {SIGTRAP}},
    {"its socket by its name", reached, "/run/sandbox/init.sock", {0}},
    {"its socket by an abstract name", reached, "sandbox-init", {1}},
    {"the shim's socket", reached, "/var/lib/sandbox/engine/shim.sock", {0}},
    {"the daemon's socket", reached, "/var/lib/sandbox/sandbox.sock", {0}},
};

int main(void) { return ATTACK_ALL(all); }
