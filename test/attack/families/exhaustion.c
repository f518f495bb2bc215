// class: exhaustion
// order: 11
// alone: it takes all that it gets
// box: --memory 256 --cpus 1
// What a box takes ends at its own limits, or at those of one of its processes.
#include "attack.h"
#include <pthread.h>
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/timerfd.h>
#include <time.h>

#define MIB (1L << 20)

static long taken;
static int ids[1 << 17]; // of what outlives a process

// takers take one more of something, and return -1 when there is no more.
static long pipes(void) {
  int fds[2];
  return pipe(fds);
}
static long wide_pipes(void) {
  int fds[2];
  return pipe(fds) ? -1 : fcntl(fds[0], F_SETPIPE_SZ, MIB) < 0 ? -1 : 0;
}
static long files(void) { return open("/dev/null", O_RDONLY); }
static long terminals(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY); }
static long sockets(void) { return socket(AF_INET, SOCK_STREAM, 0); }
static long pairs(void) {
  int fds[2];
  return socketpair(AF_UNIX, SOCK_DGRAM, 0, fds);
}
static long epolls(void) { return epoll_create1(0); }
static long events(void) { return eventfd(0, 0); }
static long clocks(void) { return timerfd_create(CLOCK_MONOTONIC, 0); }
static long watchers(void) { return inotify_init(); }
static long memfds(void) { return memfd_create("x", 0); }
static long timers(void) {
  timer_t one;
  return timer_create(CLOCK_MONOTONIC, 0, &one);
}
static long queues(void) { return ids[taken] = msgget(IPC_PRIVATE, 0600); }
static long semaphores(void) { return ids[taken] = semget(IPC_PRIVATE, 1, 0600); }
static long segments(void) { return ids[taken] = shmget(IPC_PRIVATE, 4096, 0600); }
static long signals(void) { return sigqueue(getpid(), SIGRTMIN, (union sigval){0}); }
static long named_queues(void) {
  char name[32];
  snprintf(name, sizeof name, "/board%ld", taken);
  long queue = mq_open(name, O_CREAT | O_RDWR, 0600, 0);
  if (queue >= 0) mq_unlink(name);
  return queue;
}
static void *wait_for_ever(void *nothing) {
  pause();
  return nothing;
}
static long threads(void) {
  pthread_t one;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  errno = pthread_create(&one, &small, wait_for_ever, 0);
  return errno ? -1 : 0;
}
static long maps(void) { return mmap(0, 4096, taken % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0; }

// expendable has the kernel end this process first when the box is out of memory.
static void expendable(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  (void)!write(fd, "1000", 4);
  close(fd);
}

// emptied removes what outlives a process.
static void emptied(long (*what)(void)) {
  for (long i = 0; i < taken; i++) {
    if (what == queues) msgctl(ids[i], IPC_RMID, 0);
    if (what == semaphores) semctl(ids[i], 0, IPC_RMID);
    if (what == segments) shmctl(ids[i], IPC_RMID, 0);
  }
}

// hoarded takes one after another, which must end before the number of args.
static enum verdict hoarded(const struct attack *a) {
  long (*what)(void) = (long (*)(void))a->args[0];
  signal(SIGRTMIN, SIG_IGN);
  sigset_t later;
  sigemptyset(&later);
  sigaddset(&later, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &later, 0);
  expendable();
  while (what() >= 0)
    if (++taken > a->args[1]) return told(GOT, "it has more than %ld", a->args[1]);
  int refusal = errno;
  emptied(what);
  return told(HELD, "%s", strerrorname_np(refusal));
}

// fillers take a MiB of memory, and return -1 when there is none.
static char block[MIB];
static long anonymous(void) {
  char *p = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? -1 : (memset(p, 1, MIB), 0);
}
static long shared(void) {
  char *p = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? -1 : (memset(p, 1, MIB), 0);
}
static long locked(void) {
  char *p = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? -1 : mlock(p, MIB);
}
static long in_a_memfd(void) {
  static int fd = -1;
  if (fd < 0) fd = memfd_create("x", 0);
  return write(fd, block, MIB) == MIB ? 0 : -1;
}
static long in_a_segment(void) {
  int id = shmget(IPC_PRIVATE, MIB, 0600);
  char *p = id < 0 ? (void *)-1 : shmat(id, 0, 0);
  shmctl(id, IPC_RMID, 0);
  return p == (void *)-1 ? -1 : (memset(p, 1, MIB), 0);
}
static long in_dev_shm(void) {
  static int fd = -1;
  if (fd < 0) {
    fd = open("/dev/shm/board", O_CREAT | O_WRONLY, 0600);
    unlink("/dev/shm/board");
  }
  return write(fd, block, MIB) == MIB ? 0 : -1;
}
static long in_sockets(void) {
  int fds[2], size = 8 << 20;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) return -1;
  setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  while (send(fds[0], block, 65536, MSG_DONTWAIT) > 0) {
  }
  return 0;
}
static long in_pipes(void) {
  int fds[2];
  if (pipe2(fds, O_NONBLOCK)) return -1;
  return write(fds[1], block, 65536) == 65536 ? 0 : -1;
}

// filled takes memory in a process of its own, which must be refused or end it.
static enum verdict filled(const struct attack *a) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    expendable();
    for (long n = 0; n < a->args[1]; n++)
      if (((long (*)(void))a->args[0])() < 0) _exit(1);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return told(NOT_RUN, "no process");
  if (WIFSIGNALED(status)) return told(WTERMSIG(status) == SIGKILL ? HELD : NOT_RUN, "killed: %s", strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) ? told(HELD, "refused") : told(GOT, "it has more than the box may have");
}

#define HOARD(name, what, most) {name, hoarded, 0, {(long)(what), most}}
#define FILL(name, what, most) {name, filled, 0, {(long)(what), most}}

static const struct attack all[] = {
    HOARD("descriptors", files, 1L << 20), HOARD("pipes", pipes, 1L << 19), HOARD("pipes of a MiB", wide_pipes, 1L << 10),
    HOARD("terminals", terminals, 4096), HOARD("sockets", sockets, 1L << 20), HOARD("pairs of sockets", pairs, 1L << 19),
    HOARD("epolls", epolls, 1L << 20), HOARD("events", events, 1L << 20), HOARD("timers with descriptors", clocks, 1L << 20),
    HOARD("watchers of files", watchers, 1L << 16), HOARD("files in memory", memfds, 1L << 20), HOARD("timers", timers, 1L << 20),
    HOARD("queues of messages", queues, 1L << 16), HOARD("semaphores", semaphores, 1L << 16), HOARD("segments", segments, 1L << 16),
    HOARD("signals", signals, 1L << 20), HOARD("queues with names", named_queues, 1L << 16), HOARD("threads", threads, 1L << 15),
    HOARD("maps", maps, 1L << 20),
    FILL("memory", anonymous, 512), FILL("shared memory", shared, 512), FILL("locked memory", locked, 512), FILL("memory of a file", in_a_memfd, 512),
    FILL("memory of a segment", in_a_segment, 512), FILL("memory of /dev/shm", in_dev_shm, 512),
    FILL("memory of sockets", in_sockets, 4096), FILL("memory of pipes", in_pipes, 8192),
};

int main(void) { return ATTACK_ALL(all); }
