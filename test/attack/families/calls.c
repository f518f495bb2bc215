// class: system calls and ABIs
// order: 6
// What no program of a box needs is refused, by each of the processor's ways into the kernel.
#include "attack.h"
#include <linux/capability.h>
#include <sys/prctl.h>

static char buffer[4096];
static const char none[] = "none";
#define BUFFER (long)buffer
#define NAME (long)none
#define CALL(name, ...) {name, call, 0, {__VA_ARGS__}}

#ifdef __x86_64__
// X32 calls have this bit beside the number, and their numbers begin anew where they differ.
#define X32 0x40000000L

// i386 makes a call as a program of 32 bits does, from one of 64. A kernel without these
// programs ends it.
static enum verdict i386(const struct attack *a) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(a->args[0]), "b"(a->args[1]), "c"(a->args[2]), "d"(a->args[3]) : "memory", "r8", "r9", "r10", "r11");
  if (result < 0 && result > -4096) {
    errno = (int)-result;
    result = -1;
  }
  return refused(result);
}
#endif

// regained looks for a capability that the program could switch on again.
static enum verdict regained(const struct attack *a) { return refused(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, a->args[0], 0, 0)); }

// granted gives itself every capability.
static enum verdict granted(const struct attack *a) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct all[2] = {{~0u, ~0u, 0}, {0x1ff, 0x1ff, 0}};
  (void)a;
  return refused(syscall(SYS_capset, &head, all));
}

static enum verdict unprivileged(const struct attack *a) {
  (void)a;
  prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? told(HELD, "no_new_privs stays") : told(GOT, "programs may gain rights");
}

static const struct attack all[] = {
    CALL("bpf: make a map", SYS_bpf, 0, BUFFER, 64),
    CALL("bpf: load a program", SYS_bpf, 5, BUFFER, 128),
    CALL("bpf: a token", SYS_bpf, 36, BUFFER, 64),
    CALL("io_uring_setup", SYS_io_uring_setup, 1, BUFFER),
    CALL("io_uring_enter", SYS_io_uring_enter, 0, 1, 1, 0, 0, 0),
    CALL("io_uring_register", SYS_io_uring_register, -1, 0, BUFFER, 1),
    CALL("userfaultfd", SYS_userfaultfd, 0),
    CALL("userfaultfd, for its own mode", SYS_userfaultfd, 1),
    CALL("perf_event_open", SYS_perf_event_open, BUFFER, 0, -1, -1, 0),
    CALL("perf_event_open of all", SYS_perf_event_open, BUFFER, -1, 0, -1, 0),
    CALL("keyctl: join a session", SYS_keyctl, 1, 0),
    CALL("keyctl: its session's keyring", SYS_keyctl, 0, -3, 0),
    CALL("keyctl: the user's keyring", SYS_keyctl, 0, -4, 1),
    CALL("keyctl: read", SYS_keyctl, 11, -4, BUFFER, 64),
    CALL("add_key", SYS_add_key, (long)"user", NAME, BUFFER, 8, -4),
    CALL("request_key", SYS_request_key, (long)"user", NAME, 0, -4),
    CALL("open_by_handle_at", SYS_open_by_handle_at, AT_FDCWD, BUFFER, O_RDONLY),
    CALL("fanotify_init", SYS_fanotify_init, 0, 0),
    CALL("fanotify_init, of notices", SYS_fanotify_init, 0x200, 0),
    CALL("init_module", SYS_init_module, BUFFER, 64, NAME),
    CALL("finit_module", SYS_finit_module, 0, NAME, 0),
    CALL("delete_module", SYS_delete_module, NAME, 0),
    CALL("kexec_load", SYS_kexec_load, 0, 0, 0, 0),
    CALL("kexec_file_load", SYS_kexec_file_load, -1, -1, 0, 0, 0),
    CALL("reboot", SYS_reboot, 0xfee1dead, 0x28121969, 0x89abcdef, 0),
    CALL("reboot by restart", SYS_reboot, 0xfee1dead, 0x28121969, 0x01234567, 0),
    CALL("syslog: read all", SYS_syslog, 3, BUFFER, 64),
    CALL("syslog: clear", SYS_syslog, 5, 0, 0),
    CALL("syslog: console off", SYS_syslog, 6, 0, 0),
    CALL("syslog: its size", SYS_syslog, 10, 0, 0),
    CALL("sethostname", SYS_sethostname, NAME, 4),
    CALL("setdomainname", SYS_setdomainname, NAME, 4),
    CALL("swapon", SYS_swapon, NAME, 0),
    CALL("swapoff", SYS_swapoff, NAME),
    CALL("acct", SYS_acct, NAME),
    CALL("settimeofday", SYS_settimeofday, BUFFER, 0),
    CALL("clock_settime", SYS_clock_settime, 0, BUFFER),
    CALL("clock_adjtime", SYS_clock_adjtime, 0, (long)"\1\0\0\0"),
    CALL("adjtimex", SYS_adjtimex, (long)"\1\0\0\0"),
    CALL("vhangup", SYS_vhangup),
    CALL("quotactl", SYS_quotactl, 0x80000102, NAME, 0, BUFFER),
    CALL("quotactl_fd", 443, 0, 0x80000102, 0, BUFFER),
    CALL("personality of a 32 bit program's addresses", SYS_personality, 0x0400000 | 0x0040000),
    CALL("set_mempolicy_home_node", 450, 0, 4096, 0, 0),
    CALL("mbind to another node", SYS_mbind, BUFFER, 4096, 1, BUFFER, 64, 6),
    CALL("mbind", SYS_mbind, 0, 4096, 0, 0, 0, 0),
    CALL("set_mempolicy", SYS_set_mempolicy, 0, 0, 0),
    CALL("memfd_secret", SYS_memfd_secret, 0),
    CALL("move_pages of init", SYS_move_pages, 1, 1, BUFFER, 0, BUFFER, 0),
    CALL("memfd of huge pages", SYS_memfd_create, NAME, 4),
    CALL("mmap of huge pages", SYS_mmap, 0, 2 << 20, 3, 0x40022, -1, 0),
    CALL("shared memory of huge pages", SYS_shmget, 0, 2 << 20, 04000 | 01000 | 0600),
    CALL("mmap of page zero", SYS_mmap, 0, 4096, 3, 0x32, -1, 0),
    CALL("listns", 470, BUFFER, BUFFER, 8, 0),
    CALL("map_shadow_stack", 453, 0, 0, 1),
    CALL("a later call", 600),
    CALL("a much later call", 9999),
    CALL("a call below all", -7),
    {"raise an ambient right to all", regained, 0, {21}},
    {"raise an ambient right to the network", regained, 0, {12}},
    {"raise an ambient right to trace", regained, 0, {19}},
    {"may gain rights again", unprivileged},
    {"all rights by capset", granted},
#ifdef __x86_64__
    CALL("nfsservctl", 180, 0, BUFFER, BUFFER),
    CALL("lookup_dcookie", 212, 1, BUFFER, 64),
    CALL("iopl", SYS_iopl, 3),
    CALL("ioperm", SYS_ioperm, 0, 1024, 1),
    CALL("modify_ldt", SYS_modify_ldt, 1, BUFFER, 16),
    CALL("uselib", 134, NAME),
    CALL("sysfs", SYS_sysfs, 3),
    CALL("_sysctl", 156, BUFFER),
    CALL("ustat", SYS_ustat, 0xfe00, BUFFER),
    CALL("x32: mount", X32 | SYS_mount, NAME, NAME, NAME, 0, 0),
    CALL("x32: unshare", X32 | SYS_unshare, CLONE_NEWUSER),
    CALL("x32: setns", X32 | SYS_setns, 0, 0),
    CALL("x32: ptrace", X32 | 521, 16, 1, 0, 0),
    CALL("x32: kexec_load", X32 | 528, 0, 0, 0, 0),
    CALL("x32: bpf", X32 | SYS_bpf, 0, BUFFER, 64),
    CALL("x32: process_vm_writev", X32 | 540, 1, BUFFER, 1, BUFFER, 1, 0),
    CALL("x32: getpid", X32 | SYS_getpid),
    CALL("x32: ioctl", X32 | 514, 0, 0x5412, NAME),
    CALL("x32: io_setup", X32 | 543, 1, BUFFER),
    {"i386: getpid", i386, 0, {20}},
    {"i386: mount", i386, 0, {21, 0, 0, 0}},
    {"i386: ptrace", i386, 0, {26, 16, 1, 0}},
    {"i386: unshare", i386, 0, {310, CLONE_NEWUSER}},
    {"i386: setns", i386, 0, {346, 0, 0}},
    {"i386: socketcall", i386, 0, {102, 1, 0}},
    {"i386: bpf", i386, 0, {357, 0, 0, 0}},
    {"i386: init_module", i386, 0, {128, 0, 0, 0}},
    {"i386: vm86", i386, 0, {166, 0, 0}},
    {"i386: a later call", i386, 0, {9999}},
#endif
};

int main(void) { return ATTACK_ALL(all); }
