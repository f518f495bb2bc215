// class: mounts, old and new calls
// order: 2
// A box mounts nothing, unmounts nothing and changes no mount.
#include "attack.h"
#include <sys/mount.h>

static enum verdict mounted(const struct attack *a) { return refused(mount("none", "/tmp", a->text, 0, 0)); }

static enum verdict made(const struct attack *a) {
  int fd = (int)syscall(SYS_fsopen, a->text, 0);
  return refused(fd);
}

static enum verdict changed(const struct attack *a) { return refused(mount(a->text, a->args[1] ? "/tmp" : a->text, 0, (unsigned long)a->args[0], 0)); }

static enum verdict unmounted(const struct attack *a) { return refused(umount2(a->text, (int)a->args[0])); }

static enum verdict picked(const struct attack *a) { return refused(syscall(SYS_fspick, AT_FDCWD, a->text, 0)); }

static enum verdict copied(const struct attack *a) {
  return refused(syscall(SYS_open_tree, AT_FDCWD, a->text, OPEN_TREE_CLONE | (a->args[0] ? AT_RECURSIVE : 0)));
}

static enum verdict attributed(const struct attack *a) {
  struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
  return refused(syscall(SYS_mount_setattr, AT_FDCWD, a->text, a->args[0], &attr, sizeof attr));
}

static enum verdict moved(const struct attack *a) {
  int fd = open(a->text, O_PATH | O_CLOEXEC);
  return fd < 0 ? told(NOT_RUN, "no %s", a->text) : refused(syscall(SYS_move_mount, fd, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH));
}

// swapped makes another directory the root.
static enum verdict swapped(const struct attack *a) {
  mkdir("/tmp/new", 0755);
  return refused(syscall(SYS_pivot_root, a->text, "/tmp/new"));
}

#define KINDS(how, run)                                                                                             \
  {how " proc", run, "proc"}, {how " sysfs", run, "sysfs"}, {how " tmpfs", run, "tmpfs"}, {how " ramfs", run, "ramfs"}, \
      {how " devtmpfs", run, "devtmpfs"}, {how " devpts", run, "devpts"}, {how " cgroup", run, "cgroup"},              \
      {how " cgroup2", run, "cgroup2"}, {how " overlay", run, "overlay"}, {how " ext4", run, "ext4"},                  \
      {how " xfs", run, "xfs"}, {how " btrfs", run, "btrfs"}, {how " squashfs", run, "squashfs"}, {how " erofs", run, "erofs"}, \
      {how " fuse", run, "fuse"}, {how " nfs", run, "nfs"}, {how " 9p", run, "9p"}, {how " virtiofs", run, "virtiofs"}, \
      {how " bpf", run, "bpf"}, {how " debugfs", run, "debugfs"}, {how " tracefs", run, "tracefs"},                    \
      {how " securityfs", run, "securityfs"}, {how " configfs", run, "configfs"}, {how " mqueue", run, "mqueue"},      \
      {how " hugetlbfs", run, "hugetlbfs"}, {how " efivarfs", run, "efivarfs"}, {how " pstore", run, "pstore"},        \
      {how " binder", run, "binder"}, {how " nsfs", run, "nsfs"}, {how " nfsd", run, "nfsd"}

static const struct attack all[] = {
    KINDS("mount", mounted),
    KINDS("fsopen", made),
    {"bind the root", changed, "/", {MS_BIND, 1}},
    {"bind all", changed, "/", {MS_BIND | MS_REC, 1}},
    {"bind /proc", changed, "/proc", {MS_BIND, 1}},
    {"bind /sys", changed, "/sys", {MS_BIND | MS_REC, 1}},
    {"bind /dev", changed, "/dev", {MS_BIND, 1}},
    {"move /proc", changed, "/proc", {MS_MOVE, 1}},
    {"remount the root", changed, "/", {MS_REMOUNT}},
    {"remount the root with devices", changed, "/", {MS_REMOUNT | MS_BIND}},
    {"remount /proc/sys for writing", changed, "/proc/sys", {MS_REMOUNT | MS_BIND}},
    {"remount /sys for writing", changed, "/sys", {MS_REMOUNT | MS_BIND}},
    {"share the root", changed, "/", {MS_SHARED | MS_REC}},
    {"make the root a slave", changed, "/", {MS_SLAVE | MS_REC}},
    {"unmount the root", unmounted, "/", {MNT_DETACH}},
    {"unmount /proc", unmounted, "/proc", {MNT_DETACH}},
    {"unmount /proc/sys", unmounted, "/proc/sys", {MNT_DETACH}},
    {"unmount the mask of /proc/kcore", unmounted, "/proc/kcore", {MNT_DETACH}},
    {"unmount the mask of /proc/keys", unmounted, "/proc/keys", {MNT_DETACH}},
    {"unmount the mask of /sys/firmware", unmounted, "/sys/firmware", {MNT_DETACH}},
    {"unmount /sys", unmounted, "/sys", {MNT_DETACH}},
    {"unmount /dev", unmounted, "/dev", {MNT_DETACH}},
    {"unmount /dev/pts by force", unmounted, "/dev/pts", {MNT_FORCE}},
    {"expire the root", unmounted, "/", {MNT_EXPIRE}},
    {"pick the root's file system", picked, "/"},
    {"pick /proc", picked, "/proc"},
    {"pick /sys", picked, "/sys"},
    {"pick /dev", picked, "/dev"},
    {"copy the root", copied, "/"},
    {"copy all", copied, "/", {1}},
    {"copy /proc", copied, "/proc"},
    {"copy /sys", copied, "/sys", {1}},
    {"clear the flags of the root", attributed, "/"},
    {"clear the flags of all", attributed, "/", {AT_RECURSIVE}},
    {"clear the flags of /proc/sys", attributed, "/proc/sys"},
    {"clear the flags of /sys", attributed, "/sys"},
    {"clear the flags of /dev", attributed, "/dev"},
    {"move /proc by its descriptor", moved, "/proc"},
    {"move the root by its descriptor", moved, "/"},
    {"make a file system of nothing", call, 0, {SYS_fsmount, -1, 0, 0}},
    {"configure a file system of nothing", call, 0, {SYS_fsconfig, -1, 6, 0, 0, 0}},
    {"copy a tree with other attributes", call, 0, {467, AT_FDCWD, (long)"/", OPEN_TREE_CLONE, 0, 0}},
    {"pivot to the root", swapped, "/"},
    {"pivot to /tmp", swapped, "/tmp"},
    {"swap a file in", call, 0, {SYS_swapon, (long)"/tmp/swap", 0}},
    {"switch quotas on", call, 0, {SYS_quotactl, 0x800002, (long)"/dev/vda", 0, 0}},
};

int main(void) { return ATTACK_ALL(all); }
