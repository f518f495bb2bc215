package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/sockets"
)

// maxConns bounds the connections over TCP. Anyone may open one before sending a
// key; without a bound they could use up the daemon's descriptors.
const maxConns = 4096

// listenTCP opens a TCP listener on the address that a flag names. Errors:
// PortInUse, Config.
func (s settings) listenTCP(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fault.New(fault.PortInUse, "%s %s: the port is taken; port 0 is a free one", flag, address)
	case err != nil:
		return nil, fault.Wrap(fault.Config, err, "%s %s", flag, address)
	}
	return s.dress(l.(*net.TCPListener)), nil
}

// dress bounds the connections of a TCP listener and has it speak TLS if there is a
// certificate.
func (s settings) dress(l *net.TCPListener) net.Listener {
	limited := limit(l, maxConns)
	if s.tls == nil {
		return limited
	}
	return tls.NewListener(limited, s.tls.config())
}

// unixListener is the Unix socket and its directory. The socket is named through
// the directory's descriptor: a long path would not fit an address.
type unixListener struct {
	net.Listener
	dir  *os.File // nil where the service manager has made the socket, and keeps it
	name string
}

// listenUnix opens the Unix socket. It removes a socket that a killed daemon left
// behind, and no other file. Errors: Config, InvalidState (something listens).
func (s settings) listenUnix(ctx context.Context) (*unixListener, error) {
	if s.Inherited.Unix != nil {
		return &unixListener{Listener: s.Inherited.Unix}, nil
	}
	dir, err := sockets.OpenDir(filepath.Dir(s.Socket))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "--socket %s", s.Socket)
	}
	l := &unixListener{dir: dir, name: filepath.Base(s.Socket)}
	if err := l.removeStale(ctx); err != nil {
		_ = dir.Close()
		return nil, err
	}
	if l.Listener, err = l.open(); err != nil {
		_ = dir.Close()
		return nil, fault.Wrap(fault.Config, err, "--socket %s", s.Socket)
	}
	if s.group >= 0 {
		if err := l.share(s.group); err != nil {
			return nil, errors.Join(fault.Wrap(fault.Config, err, "--socket-group %s", s.SocketGroup), l.Close())
		}
	}
	return l, nil
}

// share gives the socket to a group, whose members may connect from then on.
func (l *unixListener) share(group int) error {
	fd, err := unix.Openat(int(l.dir.Fd()), l.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchownat(fd, "", -1, group, unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o660)
}

func (l *unixListener) open() (net.Listener, error) {
	fd, err := sockets.Listen(l.dir, l.name)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), l.name)
	defer f.Close() // the listener has a copy
	return net.FileListener(f)
}

// removeStale removes the socket of a daemon that no longer runs. Errors: Config,
// InvalidState (something listens).
func (l *unixListener) removeStale(ctx context.Context) error {
	var st unix.Stat_t
	err := unix.Fstatat(int(l.dir.Fd()), l.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "--socket")
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fault.New(fault.Config, "--socket %s exists and is not a socket: remove it, or name another path", l.name)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", sockets.Address(l.dir, l.name))
	if err == nil {
		_ = conn.Close()
		return fault.New(fault.InvalidState, "another program answers on the socket %s", l.name)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fault.Wrap(fault.Config, err, "--socket")
	}
	return fault.Wrap(fault.Config, unix.Unlinkat(int(l.dir.Fd()), l.name, 0), "remove the socket of a daemon that has ended")
}

// Close closes the listener and removes its name.
func (l *unixListener) Close() error {
	err := l.Listener.Close()
	if errors.Is(err, net.ErrClosed) { // it was closed before
		return nil
	}
	if l.dir == nil {
		return err
	}
	return errors.Join(err, unix.Unlinkat(int(l.dir.Fd()), l.name, 0), l.dir.Close())
}

// lockTimeout is what a lock that is held gets to be let go: a child that a
// killed daemon was just starting has it too, until it runs its program.
const lockTimeout = time.Second

// lock makes sure that a home has one daemon. The lock ends with the process.
// patience is how long it waits for one that is held. Errors: InvalidState, Storage, Canceled.
func lock(ctx context.Context, home string, patience time.Duration) (*filelock.File, error) {
	dir := filepath.Join(home, "daemon")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Disk(err, "make the home")
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path := filepath.Join(dir, "lock")
	f, err := filelock.Exclusive(waiting, path)
	if fault.Is(err, fault.Timeout) && ctx.Err() == nil {
		f, err = filelock.Try(path) // this process may have stood still for all of the wait
	}
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fault.New(fault.InvalidState, "a daemon already runs on the home %s: stop it, or set SANDBOX_HOME to another home", home)
	}
	return f, fault.Disk(err, "lock the home")
}
