package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/daemon/address"
	"sandbox/profile"
)

// rootHome is the home of root's daemon, which others may be let use.
const rootHome = "/var/lib/sandbox"

// homes returns the homes whose daemon is this host's own: the home of this
// process, and root's unless SANDBOX_HOME names one.
func (t Target) homes() ([]string, error) {
	home, err := local.Home(t.getenv("SANDBOX_HOME"))
	if err != nil {
		return nil, err
	}
	if t.getenv("SANDBOX_HOME") != "" || home == rootHome {
		return []string{home}, nil
	}
	return []string{home, rootHome}, nil
}

// ambient returns where the boxes are if neither the target nor the environment says
// it.
func (t Target) ambient(ctx context.Context) (o client.Options, remote bool, err error) {
	homes, err := t.homes()
	if err != nil {
		return o, false, err
	}
	p, ok, err := t.Stored(profile.Default)
	if err != nil {
		return o, false, err
	}
	var own []client.Options
	var sockets []string
	for _, home := range homes {
		at, err := address.Read(home)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return o, false, err
		}
		ok = ok && p.URL != at.URL
		socket := cmp.Or(at.Socket, filepath.Join(home, "sandbox.sock"))
		sockets = append(sockets, socket)
		own = append(own, client.Options{URL: (&url.URL{Scheme: "unix", Path: socket}).String(), PathPrefix: at.Prefix})
	}
	if t.getenv("SANDBOX_HOME") == "" { // a user of the service may not enter the home, where the address stands
		sockets = append(sockets, address.Shared)
		own = append(own, client.Options{URL: (&url.URL{Scheme: "unix", Path: address.Shared}).String()})
	}
	if ok {
		return t.Options(p), true, nil
	}
	for i, socket := range sockets {
		if client.Listens(ctx, socket) {
			return own[i], true, nil
		}
	}
	if local.Able() {
		return o, false, nil
	}
	return o, false, noDaemon(sockets, func(socket string) bool {
		return errors.Is(unix.Access(socket, unix.W_OK), unix.EACCES)
	})
}

// noDaemon returns the error that no daemon answers on any of the sockets. It says
// whose a socket is that is closed to this user. Errors: Unavailable.
func noDaemon(sockets []string, closed func(socket string) bool) error {
	for _, socket := range slices.Backward(sockets) { // the one that is for others is the last
		if closed(socket) {
			return fault.New(fault.Unavailable,
				"%s: run this as that user, for example with sudo, or as one of its group, or ask that user for a key ('sandbox keys create') and name the server and the key in SANDBOX_REST_URL and SANDBOX_API_KEY", belongs(socket))
		}
	}
	return fault.New(fault.Unavailable,
		"no daemon listens on %s, and on this host only root can make boxes without one: start 'sandbox serve' as root, name a server in SANDBOX_REST_URL, or store one with 'sandbox auth login'",
		strings.Join(sockets, " or "))
}

// belongs says whose a socket is, or the directory in which it can't be seen.
func belongs(socket string) string {
	info, err := os.Stat(socket)
	format := "the socket %s exists, but it belongs to %s (mode %04o)"
	if err != nil {
		format = "the socket %s can't be reached: its directory belongs to %s (mode %04o)"
		info, err = os.Stat(filepath.Dir(socket))
	}
	if err != nil {
		return fmt.Sprintf("you may not use the socket %s", socket)
	}
	owner := "another user"
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = "user " + strconv.Itoa(int(stat.Uid))
		if u, err := user.LookupId(strconv.Itoa(int(stat.Uid))); err == nil {
			owner = u.Username
		}
		if g, err := user.LookupGroupId(strconv.Itoa(int(stat.Gid))); err == nil && info.Mode()&0o020 != 0 {
			owner += " and the group " + g.Name
		}
	}
	return fmt.Sprintf(format, socket, owner, info.Mode().Perm())
}
