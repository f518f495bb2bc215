// class: devices
// order: 5
// A box has the devices of its /dev, and makes and reaches no others.
#include "attack.h"
#include <sys/sysmacros.h>

static enum verdict made(const struct attack *a) {
  unlink("/tmp/node");
  if (mknod("/tmp/node", (mode_t)a->args[0] | 0666, makedev((unsigned)a->args[1], (unsigned)a->args[2]))) return refused(-1);
  return refused(open("/tmp/node", O_RDONLY | O_NONBLOCK));  // that the node is there harms nobody
}

// marked makes what says that a file is removed, which needs no capability.
static enum verdict marked(const struct attack *a) {
  unlink(a->text);
  return refused(mknod(a->text, S_IFCHR | 0666, makedev(0, 0)));
}

// moved gives a device of the box another meaning.
static enum verdict asked(const struct attack *a) {
  int fd = open(a->text, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  return fd < 0 ? refused(-1) : refused(ioctl(fd, (unsigned long)a->args[0], a->args[1]));
}

#define CHAR(name, major, minor) {"make and open " name, made, 0, {S_IFCHR, major, minor}}
#define BLOCK(name, major, minor) {"make and open " name, made, 0, {S_IFBLK, major, minor}}
#define OPEN(path) {"open " path, opened, path, {O_RDWR | O_NONBLOCK}}

static const struct attack all[] = {
    CHAR("mem", 1, 1), CHAR("kmem", 1, 2), CHAR("port", 1, 4), CHAR("kmsg", 1, 11), CHAR("null", 1, 3), CHAR("a console", 4, 0),
    CHAR("a serial line", 4, 64), CHAR("the console", 5, 1), CHAR("ptmx", 5, 2), CHAR("a watchdog", 10, 130), CHAR("hpet", 10, 228),
    CHAR("fuse", 10, 229), CHAR("kvm", 10, 232), CHAR("tun", 10, 200), CHAR("loop control", 10, 237), CHAR("userfaultfd", 10, 126),
    CHAR("vhost-net", 10, 238), CHAR("vsock", 10, 121), CHAR("mapper control", 10, 236), CHAR("btrfs control", 10, 234), CHAR("snapshot", 10, 231),
    CHAR("uinput", 10, 223), CHAR("an input", 13, 64), CHAR("a frame buffer", 29, 0), CHAR("a graphics card", 226, 0), CHAR("a scsi generic", 21, 0),
    CHAR("an i2c bus", 89, 0), CHAR("msr", 202, 0), CHAR("cpuid", 203, 0), CHAR("a usb bus", 189, 0), CHAR("vfio", 10, 196),
    BLOCK("a ram disk", 1, 0), BLOCK("a loop device", 7, 0), BLOCK("a scsi disk", 8, 0), BLOCK("a mapped disk", 253, 0), BLOCK("a virtual disk", 254, 0),
    BLOCK("a network disk", 43, 0), BLOCK("an nvme disk", 259, 0), BLOCK("a raid", 9, 0),
    OPEN("/dev/mem"), OPEN("/dev/kmsg"), OPEN("/dev/port"), OPEN("/dev/fuse"), OPEN("/dev/kvm"), OPEN("/dev/net/tun"), OPEN("/dev/loop-control"),
    OPEN("/dev/loop0"), OPEN("/dev/vda"), OPEN("/dev/sda"), OPEN("/dev/mapper/control"), OPEN("/dev/userfaultfd"), OPEN("/dev/vhost-net"),
    OPEN("/dev/vsock"), OPEN("/dev/console"), OPEN("/dev/tty1"), OPEN("/dev/ttyS0"), OPEN("/dev/hwrng"), OPEN("/dev/input/event0"),
    OPEN("/dev/dri/card0"), OPEN("/dev/cpu/0/msr"), OPEN("/dev/watchdog"), OPEN("/dev/rtc0"), OPEN("/dev/btrfs-control"), OPEN("/dev/nbd0"),
    {"make a mark of a removed file", marked, "/tmp/mark"},
    {"make one in memory", marked, "/dev/shm/mark"},
    {"add entropy", asked, "/dev/random", {0x40085203, (long)"\0\0\0\0\0\0\0\0"}},
    {"clear entropy", asked, "/dev/random", {0x5206}},
    {"reseed", asked, "/dev/urandom", {0x5207}},
};

int main(void) { return ATTACK_ALL(all); }
