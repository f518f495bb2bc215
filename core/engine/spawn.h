#ifndef SANDBOX_SPAWN_H
#define SANDBOX_SPAWN_H

struct spawn {
	int exe;         // the program's descriptor
	char **argv;     // ends with NULL
	char **envp;     // ends with NULL
	const int *fds;  // become 0 to nfds-1; each must be nfds or more
	int nfds;
	char *stack;     // for spawn_detached's own use
	int error;
};

// spawn_detached starts the program. Returns 0, or an errno.
int spawn_detached(struct spawn *s);

#endif
