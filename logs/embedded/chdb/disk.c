#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// These functions take the place of the C library's in libchdb, as the dynamic linker
// finds those of the program first. libchdb ignores that a write fails, but not that a
// sync does, and it syncs each file before it relies on it. So a sync of a file fails
// once a write to it has failed. Otherwise a full disk leaves files that lack a piece. See
// docs/RATIONALE.md.

// How many descriptors a process can have, unless the host has raised fs.nr_open.
enum { DESCRIPTORS = 1 << 20 };

// The error of the first write that failed, by descriptor; 0 for none.
static atomic_uchar failed[DESCRIPTORS];

static int in_table(int fd) { return fd >= 0 && fd < DESCRIPTORS; }

// Reports whether an error says that the disk did not take the bytes.
static int is_of_disk(int error) {
	return error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG;
}

ssize_t write(int fd, const void *data, size_t size) {
	ssize_t n = syscall(SYS_write, fd, data, size);
	if (n < 0 && is_of_disk(errno) && in_table(fd) && !failed[fd])
		failed[fd] = (unsigned char)errno;
	return n;
}

static int sync_file(long call, int fd) {
	if (in_table(fd) && failed[fd]) {
		errno = failed[fd];
		return -1;
	}
	return (int)syscall(call, fd);
}

int fsync(int fd) { return sync_file(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_file(SYS_fdatasync, fd); }

int close(int fd) {
	if (in_table(fd))
		failed[fd] = 0; // before another file can have the number
	return (int)syscall(SYS_close, fd);
}
