// Starts a program that is not a child of the caller. See spawn.go.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spawn.h"

enum { STACK = 64 << 10 };

static int grandchild(void *arg) {
	struct spawn *s = arg;
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	for (int sig = 1; sig < _NSIG; sig++)
		sigaction(sig, &dfl, 0);
	if (setsid() < 0 || chdir("/") < 0)
		goto failed;
	// Without root the program makes a mount namespace by itself.
	if (geteuid() == 0 && (unshare(CLONE_NEWNS) < 0 || mount(0, "/", 0, MS_REC | MS_SLAVE, 0) < 0))
		goto failed;
	umask(022);
	for (int i = 0; i < s->nfds; i++)
		if (dup2(s->fds[i], i) < 0)
			goto failed;
	syscall(SYS_close_range, s->nfds, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, 0);
	syscall(SYS_execveat, s->exe, "", s->argv, s->envp, AT_EMPTY_PATH);
failed:
	s->error = errno;
	_exit(127);
}

static int child(void *arg) {
	struct spawn *s = arg;
	if (clone(grandchild, s->stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, s) < 0)
		s->error = errno;
	_exit(0);
}

int spawn_detached(struct spawn *s) {
	char *stacks = mmap(0, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stacks == MAP_FAILED)
		return errno;
	s->error = 0;
	s->stack = stacks + STACK;
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	// No exit signal: the host gets no SIGCHLD and its wait() does not see it.
	int pid = clone(child, stacks + STACK, CLONE_VM | CLONE_VFORK, s);
	if (pid < 0)
		s->error = errno;
	else
		while (waitpid(pid, 0, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, 0);
	munmap(stacks, 2 * STACK);
	return s->error;
}
