// class: terminals
// order: 8
// exec: -t
// A command types nothing into the terminal that it shares with its caller, and takes no other.
#include "attack.h"
#include <pty.h>
#include <termios.h>

static enum verdict typed(const struct attack *a) {
  char letter = 'x';
  return refused(ioctl((int)a->args[0], (unsigned long)a->args[1], &letter));
}

// typed_wide gives the call's number with bits above its 32, which the kernel drops.
static enum verdict typed_wide(const struct attack *a) {
  char letter = 'x';
  return refused(syscall(SYS_ioctl, 0, a->args[0] | (long)0xffffffff00000000UL, &letter));
}

static enum verdict pasted(const struct attack *a) {
  char request[32] = {(char)a->args[0]};
  return refused(ioctl(0, TIOCLINUX, request));
}

static enum verdict asked(const struct attack *a) { return refused(ioctl(0, (unsigned long)a->args[0], a->args[1])); }

// disciplined wants a line discipline that is not there: it must not be loaded for a box.
static enum verdict disciplined(const struct attack *a) {
  if (ioctl(0, TIOCSETD, a->args[1]) == 0) return told(GOT, "it was loaded");
  return told(HELD, "%s", strerrorname_np(errno));
}

// own_typed types into a terminal of its own, which would be typing all the same.
static enum verdict own_typed(const struct attack *a) {
  char letter = 'x';
  int ours, theirs;
  (void)a;
  if (openpty(&ours, &theirs, 0, 0, 0)) return told(NOT_RUN, "no terminal");
  return refused(ioctl(theirs, TIOCSTI, &letter));
}

static const struct attack all[] = {
    {"type on the input", typed, 0, {0, TIOCSTI}},
    {"type on the output", typed, 0, {1, TIOCSTI}},
    {"type on the errors", typed, 0, {2, TIOCSTI}},
    {"type by a wider number", typed_wide, 0, {TIOCSTI}},
    {"type into a terminal of its own", own_typed},
    {"paste the selection", pasted, 0, {3}},
    {"select", pasted, 0, {2}},
    {"unblank the screen", pasted, 0, {4}},
    {"the console's log", pasted, 0, {11}},
    {"the colours of the console", asked, 0, {0x4B71, 0}},
    {"a key of the console", asked, 0, {0x4B47, 0}},
    {"a string for a key", asked, 0, {0x4B49, 0}},
    {"the mode of the console", asked, 0, {0x4B3A, 1}},
    {"switch consoles", asked, 0, {0x5606, 1}},
    {"take the console's output", asked, 0, {TIOCCONS, 0}},
    {"steal a terminal", asked, 0, {TIOCSCTTY, 1}},
    {"lock its settings", asked, 0, {TIOCSLCKTRMIOS, (long)why}},
    {"a line discipline of ppp", disciplined, 0, {0, (long)"\3\0\0\0"}},
    {"a line discipline of n_gsm", disciplined, 0, {0, (long)"\25\0\0\0"}},
    {"a line discipline of slcan", disciplined, 0, {0, (long)"\21\0\0\0"}},
    {"a line discipline of hci", disciplined, 0, {0, (long)"\17\0\0\0"}},
    {"open the host's console", opened, "/dev/console", {O_RDWR}},
    {"open another's terminal", opened, "/dev/pts/1", {O_RDWR}},
    {"open the host's first terminal", opened, "/dev/tty0", {O_RDWR}},
};

int main(void) { return ATTACK_ALL(all); }
