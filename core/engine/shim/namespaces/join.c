// What has to be done while a process has one thread only: before Go's runtime
// starts. See join.go.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READY = 5 }; // see Serve of package shim

// rest keeps the namespaces of this process for as long as it lives. It has no
// descriptors and heeds no signal but SIGKILL.
static void rest(void) {
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, 0);
	prctl(PR_SET_NAME, "sandbox-rest");
	if (chdir("/") || syscall(SYS_close_range, 0, ~0U, 0))
		_exit(1);
	for (;;)
		pause();
}

// join moves this process into the namespaces whose descriptors the variable
// names, where it is root, and into a mount namespace of its own.
static void join(const char *variable) {
	int user, net;
	const char *what = "read which namespaces to join";
	errno = EINVAL;
	if (sscanf(variable, "%d,%d", &user, &net) != 2)
		goto failed;
	what = "join the user namespace of the home";
	if (setns(user, CLONE_NEWUSER))
		goto failed;
	what = "join the network namespace of the home";
	if (setns(net, CLONE_NEWNET))
		goto failed;
	what = "make a mount namespace";
	if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_SLAVE, 0))
		goto failed;
	what = "become root of the user namespace";
	if (setresgid(0, 0, 0) || setresuid(0, 0, 0))
		goto failed;
	close(user);
	close(net);
	unsetenv("SANDBOX_JOIN");
	return;
failed:
	dprintf(READY, "{\"code\":\"engine\",\"message\":\"%s: %s\"}\n", what, strerror(errno));
	_exit(1);
}

__attribute__((constructor)) static void begin(int argc, char **argv) {
	if (argc == 2 && !strcmp(argv[1], "rest"))
		rest();
	const char *variable = getenv("SANDBOX_JOIN");
	if (argc > 1 && !strcmp(argv[1], "serve-user") && variable)
		join(variable);
}
