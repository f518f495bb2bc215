package httpd

import (
	"context"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ownersKey is the key of a context whose value tells that a connection over the Unix
// socket is root's, or of the user that this server runs as.
type ownersKey struct{}

// withPeer notes in the context of a connection over the Unix socket whether the
// socket's owner made it. Who can't be told is somebody else.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	uid, ok := peer(c)
	return context.WithValue(ctx, ownersKey{}, ok && (uid == 0 || int(uid) == os.Geteuid()))
}

// ofOwner returns what withPeer has noted.
func ofOwner(ctx context.Context) bool {
	owner, _ := ctx.Value(ownersKey{}).(bool)
	return owner
}

// peer returns the user who connected. The kernel has noted it then, so that a
// process that gave up rights, or passed the connection on, changes nothing.
func peer(c net.Conn) (uid uint32, ok bool) {
	conn, is := c.(*net.UnixConn)
	if !is {
		return 0, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid, ok = cred.Uid, true
		}
	})
	return uid, ok && err == nil
}
