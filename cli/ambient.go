package cli

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
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/daemon"
	"sandbox/profile"
)

// rootHome is the home of root's daemon, which others may be let use.
const rootHome = "/var/lib/sandbox"

// homes returns the homes whose daemon is this host's own: the home of this
// process, and root's unless SANDBOX_HOME names one.
func homes() ([]string, error) {
	home, err := local.Home("")
	if err != nil {
		return nil, err
	}
	if os.Getenv("SANDBOX_HOME") != "" || home == rootHome {
		return []string{home}, nil
	}
	return []string{home, rootHome}, nil
}

// ambient returns where commands go if neither flags nor environment say it.
func ambient(ctx context.Context) (o client.Options, remote bool, err error) {
	homes, err := homes()
	if err != nil {
		return o, false, err
	}
	p, ok, err := storedProfile(profile.Default)
	if err != nil {
		return o, false, err
	}
	var own []client.Options
	var sockets []string
	for _, home := range homes {
		address, err := daemon.ReadAddress(home)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return o, false, err
		}
		ok = ok && p.URL != address.URL
		socket := cmp.Or(address.Socket, filepath.Join(home, "sandbox.sock"))
		sockets = append(sockets, socket)
		own = append(own, client.Options{URL: (&url.URL{Scheme: "unix", Path: socket}).String(), PathPrefix: address.Prefix})
	}
	if ok {
		return optionsOf(p), true, nil
	}
	for i, socket := range sockets {
		if client.Listens(ctx, socket) {
			return own[i], true, nil
		}
	}
	if os.Geteuid() == 0 {
		return o, false, nil
	}
	return o, false, noDaemon(sockets, func(socket string) bool {
		return errors.Is(unix.Access(socket, unix.W_OK), unix.EACCES)
	})
}

// noDaemon returns the error that no daemon answers on any of the sockets. It says
// whose a socket is that is closed to this user. Errors: Unavailable.
func noDaemon(sockets []string, closed func(socket string) bool) error {
	for _, socket := range sockets {
		if closed(socket) {
			return fault.New(fault.Unavailable,
				"%s: run this as that user, for example with sudo, or ask that user for a key ('sandbox keys create') and use --url", belongs(socket))
		}
	}
	return fault.New(fault.Unavailable,
		"no daemon listens on %s, and only root can make boxes without one: start 'sandbox serve' as root, name a server with --url, or store one with 'sandbox auth login'",
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
	}
	return fmt.Sprintf(format, socket, owner, info.Mode().Perm())
}
