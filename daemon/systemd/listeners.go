// Package systemd is what a service and the manager that started it have to say to
// each other: the listeners that the manager hands over, and what it is told in
// return. Nothing of it needs systemd itself: other managers speak the same.
package systemd

import (
	"errors"
	"net"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// E2BName is the name of the descriptor (FileDescriptorName= of a socket unit) that
// answers E2B's SDKs.
const E2BName = "e2b"

// Listeners are the sockets that a manager has handed over, each nil if it has not.
type Listeners struct {
	Unix *net.UnixListener
	TCP  *net.TCPListener
	E2B  *net.TCPListener // the one whose descriptor is called [E2BName]
}

// Inherit takes over the sockets that the environment says this process has from its
// manager (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES), and takes these words from the
// environment, so that no child reads them. Errors: Config, for a socket that can't
// be served.
func Inherit() (Listeners, error) {
	var all Listeners
	for _, f := range activation.Files(true) {
		err := all.add(f)
		_ = f.Close() // the listener has a copy
		if err != nil {
			all.Close()
			return Listeners{}, fault.Wrap(fault.Config, err, "the socket %s that the service manager handed over", f.Name())
		}
	}
	return all, nil
}

// Close closes the listeners. The names of Unix sockets stay: they are the manager's.
func (l Listeners) Close() {
	if l.Unix != nil {
		_ = l.Unix.Close()
	}
	for _, tcp := range []*net.TCPListener{l.TCP, l.E2B} {
		if tcp != nil {
			_ = tcp.Close()
		}
	}
}

// add finds out what a descriptor is and puts it in its place.
func (l *Listeners) add(f *os.File) error {
	if err := mustListen(int(f.Fd())); err != nil {
		return err
	}
	listener, err := net.FileListener(f)
	if err != nil {
		return err
	}
	if err := l.place(listener, f.Name()); err != nil {
		_ = listener.Close()
		return err
	}
	return nil
}

var errTwo = errors.New("is the second of its kind: the socket unit names one Unix socket, one TCP address and one of the name " + E2BName + " at most")

func (l *Listeners) place(listener net.Listener, name string) error {
	switch listener := listener.(type) {
	case *net.UnixListener:
		if path := listener.Addr().String(); !filepath.IsAbs(path) { // an abstract name has no mode: anybody could connect
			return errors.New("has no path: name an absolute one in ListenStream=")
		}
		return put(&l.Unix, listener)
	case *net.TCPListener:
		if name == E2BName {
			return put(&l.E2B, listener)
		}
		return put(&l.TCP, listener)
	}
	return errors.New("is neither a Unix socket nor one of TCP")
}

func put[T any](at **T, listener *T) error {
	if *at != nil {
		return errTwo
	}
	*at = listener
	return nil
}

// mustListen refuses what is no socket that waits for connections: a datagram, or a
// connection that the manager has accepted itself.
func mustListen(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return errors.New("is no socket")
	}
	if kind != unix.SOCK_STREAM {
		return errors.New("is none of streams: use ListenStream=")
	}
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
		return errors.New("does not listen: use ListenStream= with Accept=no")
	}
	return nil
}
