package daemon_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/test/boxes"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

const (
	nobody = 65534 // a user without rights
	group  = 1     // daemon, which Debian always has
)

// open makes a directory that every user of the host may enter.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "s")
	must(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755)) //nolint:gosec // what the test is about
	return dir
}

// connectAs connects to a Unix socket as another user, in these groups alone.
func connectAs(uid int, groups []uint32, path string) (net.Conn, error) {
	type dialled struct {
		fd  int
		err error
	}
	done := make(chan dialled)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its rights
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(become(uid, groups), unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
		}
		done <- dialled{fd, err}
	}()
	d := <-done
	if d.err != nil {
		_ = unix.Close(d.fd)
		return nil, d.err
	}
	f := os.NewFile(uintptr(d.fd), path)
	defer f.Close()
	return net.FileConn(f)
}

// become changes the user of this thread alone, which the calls of package syscall
// don't.
func become(uid int, groups []uint32) error {
	list := append(groups, 0) // so that it has an address
	if _, _, no := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0])), 0); no != 0 {
		return no
	}
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, no := unix.RawSyscall(call, uintptr(uid), uintptr(uid), uintptr(uid)); no != 0 {
			return no
		}
	}
	return nil
}

// as returns the server for requests of another user.
func (p *program) as(uid int, groups []uint32, path string) *program {
	other := *p
	other.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return connectAs(uid, groups, path)
	}}}
	return &other
}

// shareSocket starts a server whose socket a group may use, and returns it for root and
// for a member of the group.
func shareSocket(t *testing.T, flags ...string) (root, member *program, socket string) {
	t.Helper()
	socket = filepath.Join(open(t), "s")
	root = serve(t, append(flags, "--socket", socket, "--socket-group", "daemon")...)
	root.client = root.as(0, nil, socket).client
	return root, root.as(nobody, []uint32{group}, socket), socket
}

// TestSocketGroup lets the members of a group in, and nobody else.
func TestSocketGroup(t *testing.T) {
	_, member, socket := shareSocket(t)
	var st unix.Stat_t
	must(t, unix.Lstat(socket, &st))
	if st.Mode != unix.S_IFSOCK|0o660 || st.Gid != group || st.Uid != 0 {
		t.Errorf("mode %o, owner %d, group %d", st.Mode, st.Uid, st.Gid)
	}
	member.ask("GET", "/v1/me", nil).want(t, 200, "")
	if c, err := connectAs(nobody, nil, socket); !errors.Is(err, unix.EACCES) {
		t.Errorf("a user of another group: %v", err)
		_ = c.Close()
	}
}

// TestSocketGroupRefused names what is wrong, before anything is served.
func TestSocketGroupRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		flags []string
		says  string
	}{
		"in the home":   {[]string{"--socket-group", "daemon"}, "name a socket elsewhere"},
		"no such group": {[]string{"--socket", filepath.Join(open(t), "s"), "--socket-group", "nosuch-group"}, "addgroup --system nosuch-group"},
	} {
		cmd := exec.Command(filepath.Join(programs.Dir(), "sandbox"), append([]string{"serve", "--listen", "none"}, tt.flags...)...)
		cmd.Env = append(os.Environ(), "SANDBOX_HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.says) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// TestSocketBounded holds users of the socket to the host roots, except root.
func TestSocketBounded(t *testing.T) {
	outside := t.TempDir()
	shared := filepath.Dir(rootfs.Busybox(t))
	inside := filepath.Join(shared, "inside")
	must(t, os.Mkdir(inside, 0o755))
	must(t, os.Symlink(outside, filepath.Join(shared, "link")))
	root, member, _ := shareSocket(t, "--host-root", shared)
	inner := filepath.Join(shared, "rootfs")
	for name, tt := range map[string]struct {
		volume, rootfs string
		status         int // for a member of the group; root may do all of it
	}{
		"below the root":        {inside, inner, 201},
		"a volume elsewhere":    {outside, inner, 403},
		"a link out of it":      {filepath.Join(shared, "link"), inner, 403},
		"the root's parent":     {filepath.Dir(shared), inner, 403},
		"files of a box":        {inside, root.rootfs, 403},
		"a directory of root's": {"/root", inner, 403},
	} {
		t.Run(name, func(t *testing.T) {
			code := map[int]string{403: "permission_denied"}[tt.status]
			member.ask("POST", "/v1/boxes", withVolume(tt.volume, tt.rootfs)).want(t, tt.status, code)
			root.ask("POST", "/v1/boxes", withVolume(tt.volume, tt.rootfs)).want(t, 201, "")
		})
	}
}

// withVolume is a box with a directory of the host, which it can't change.
func withVolume(path, rootfs string) map[string]any {
	return map[string]any{"cpus": 1, "rootfs_path": rootfs, "network": "None",
		"volumes": []any{map[string]any{"host_path": path, "guest_path": "/v", "read_only": true}}}
}

// TestSocketUnbounded: without host roots who may use the socket is trusted.
func TestSocketUnbounded(t *testing.T) {
	_, member, _ := shareSocket(t)
	member.ask("POST", "/v1/boxes", withVolume("/root", member.rootfs)).want(t, 201, "")
}

// unit is what a service manager keeps of a service: its sockets, and one of its own
// for what the service says.
type unit struct {
	t              *testing.T
	notify         *net.UnixConn
	unix, tcp, e2b *os.File
	path           string // of unix
	url, e2bURL    string
}

func newUnit(t *testing.T) *unit {
	t.Helper()
	u := &unit{t: t, path: filepath.Join(open(t), "s")}
	var err error
	u.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(filepath.Dir(u.path), "n"), Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { check(t, u.notify.Close()) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: u.path, Net: "unix"})
	must(t, err)
	u.unix = u.keep(l)
	for _, at := range []struct {
		file **os.File
		url  *string
	}{{&u.tcp, &u.url}, {&u.e2b, &u.e2bURL}} {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		must(t, err)
		*at.file, *at.url = u.keep(l), "http://"+l.Addr().String()
	}
	return u
}

// keep returns the descriptor of a listener until the test ends.
func (u *unit) keep(l interface {
	File() (*os.File, error)
	Close() error
}) *os.File {
	u.t.Helper()
	f, err := l.File()
	must(u.t, err)
	if named, is := l.(*net.UnixListener); is {
		named.SetUnlinkOnClose(false)
	}
	must(u.t, l.Close())
	u.t.Cleanup(func() { _ = f.Close() })
	return f
}

// command is the service with descriptors of these names. The number of its process
// is known in the process alone.
func (u *unit) command(home string, names string, files []*os.File, flags ...string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh", filepath.Join(programs.Dir(), "sandbox"), "serve"}, flags...)...)
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+home, "HOME="+home, "NOTIFY_SOCKET="+u.notify.LocalAddr().String(),
		"LISTEN_FDS="+strconv.Itoa(len(files)), "LISTEN_FDNAMES="+names)
	cmd.ExtraFiles = files
	return cmd
}

// hears returns the next thing that the service says.
func (u *unit) hears() map[string]string {
	u.t.Helper()
	must(u.t, u.notify.SetReadDeadline(time.Now().Add(time.Minute)))
	text := make([]byte, 4096)
	n, err := u.notify.Read(text)
	must(u.t, err)
	said := map[string]string{}
	for line := range strings.SplitSeq(string(text[:n]), "\n") {
		name, value, _ := strings.Cut(line, "=")
		said[name] = value
	}
	return said
}

// TestService starts the daemon as systemd does, and wants its boxes to live on over a
// restart of it.
func TestService(t *testing.T) {
	u, home := newUnit(t), t.TempDir()
	start := func() *program {
		p := &program{t: t, home: home, rootfs: filepath.Join(home, "nothing")}
		p.cmd = u.command(home, "sandbox.socket:sandbox.socket:e2b", []*os.File{u.unix, u.tcp, u.e2b})
		p.cmd.Stderr = os.Stderr
		must(t, p.cmd.Start())
		return p.as(0, nil, u.path)
	}
	p := start()
	ready := u.hears()
	if ready["READY"] != "1" || !strings.Contains(ready["STATUS"], u.url) || !strings.Contains(ready["STATUS"], u.path) || !strings.Contains(ready["STATUS"], u.e2bURL) {
		t.Fatalf("said %q", ready)
	}
	p.rootfs = rootfs.Busybox(t)
	box := p.box()
	for url, want := range map[string]int{u.url + "/v1/boxes": 401, u.url + "/healthz": 200, u.e2bURL + "/v2/sandboxes": 401} {
		resp, err := http.Get(url) //nolint:gosec,noctx // of this test's own
		must(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s answers %d, want %d", url, resp.StatusCode, want)
		}
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(boxes.ShimPID(t, home)) + "/environ")
	must(t, err)
	for _, name := range []string{"LISTEN_FDS=", "LISTEN_PID=", "LISTEN_FDNAMES=", "NOTIFY_SOCKET="} {
		if strings.Contains(string(environ), name) {
			t.Errorf("the shim has %s", name)
		}
	}

	must(t, p.cmd.Process.Signal(syscall.SIGHUP))
	reloading, again := u.hears(), u.hears()
	if at, err := strconv.ParseInt(reloading["MONOTONIC_USEC"], 10, 64); reloading["RELOADING"] != "1" || err != nil || at <= 0 || again["READY"] != "1" {
		t.Errorf("said %q, then %q", reloading, again)
	}
	stop := func() {
		must(t, p.cmd.Process.Signal(syscall.SIGTERM))
		if said := u.hears(); said["STOPPING"] != "1" {
			t.Errorf("said %q", said)
		}
		check(t, p.cmd.Wait())
	}
	stop()
	if _, err := os.Lstat(u.path); err != nil {
		t.Errorf("the manager's socket: %v", err)
	}
	early := make(chan answer)
	go func() { early <- p.ask("GET", box, nil) }() // waits in the socket that the manager has kept
	p.cmd = start().cmd
	if got := (<-early).want(t, 200, ""); got["status"] != "running" {
		t.Errorf("the box after a restart: %v", got)
	}
	if said := u.hears(); said["READY"] != "1" {
		t.Errorf("said %q", said)
	}
	p.ask("DELETE", box+"?force=true", nil).want(t, 200, "")
	stop()
}

// TestServiceRights starts the daemon without the rights that the unit of the package
// takes from it, and wants a box that has everything.
func TestServiceRights(t *testing.T) {
	text, err := os.ReadFile("../../packaging/deb/sandbox.service")
	must(t, err)
	var without []string
	for line := range strings.Lines(string(text)) {
		if names, is := strings.CutPrefix(line, "CapabilityBoundingSet=~"); is {
			for name := range strings.FieldsSeq(names) {
				without = append(without, "-"+strings.ToLower(strings.TrimPrefix(name, "CAP_")))
			}
		}
	}
	if len(without) == 0 || !strings.Contains(string(text), "\nNoNewPrivileges=yes\n") {
		t.Fatalf("the unit takes nothing: %q", without)
	}
	u, home, shared := newUnit(t), t.TempDir(), t.TempDir()
	p := (&program{t: t, home: home, rootfs: rootfs.Busybox(t)}).as(0, nil, u.path)
	p.cmd = u.command(home, "x", []*os.File{u.unix}, "--listen", "none")
	p.cmd.Path, p.cmd.Args = "/usr/bin/setpriv", append([]string{"setpriv", "--no-new-privs", "--bounding-set=" + strings.Join(without, ","), "--"}, p.cmd.Args...)
	p.cmd.Stderr = os.Stderr
	must(t, p.cmd.Start())
	defer func() {
		check(t, p.cmd.Process.Signal(syscall.SIGTERM))
		check(t, p.cmd.Wait())
	}()
	if said := u.hears(); said["READY"] != "1" {
		t.Fatalf("said %q", said)
	}
	made := p.ask("POST", "/v1/boxes", map[string]any{"cpus": 1, "rootfs_path": p.rootfs, "disk_size_gb": 1, "ports": []any{map[string]any{"guest_port": 80}},
		"volumes": []any{map[string]any{"host_path": shared, "guest_path": "/v"}}}).want(t, 201, "")
	id, _ := made["id"].(string)
	defer func() { p.ask("DELETE", "/v1/boxes/"+id+"?force=true", nil).want(t, 200, "") }()
	_, last := p.events(p.sh("/v1/boxes/"+id, "echo written > /v/file && mount | grep -q ext4 && ip addr | grep -q inet"), 0).rest()
	if code := last.data["exit_code"]; code != float64(0) {
		t.Errorf("the command in the box: %v", last.data)
	}
	if text, err := os.ReadFile(filepath.Join(shared, "file")); string(text) != "written\n" {
		t.Errorf("the volume: %q, %v", text, err)
	}
}

// TestServiceRefused hands over what can't be served, and wants it named.
func TestServiceRefused(t *testing.T) {
	u := newUnit(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer file.Close()
	datagrams, err := u.notify.File()
	must(t, err)
	defer datagrams.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	connected, other := os.NewFile(uintptr(pair[0]), ""), os.NewFile(uintptr(pair[1]), "")
	defer connected.Close()
	defer other.Close()
	abstract, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@sandbox-test-" + strconv.Itoa(os.Getpid()), Net: "unix"})
	must(t, err)
	nameless := u.keep(abstract)
	for name, tt := range map[string]struct {
		files []*os.File
		names string
		flags []string
		says  string
	}{
		"a file":              {[]*os.File{file}, "x", nil, "is no socket"},
		"datagrams":           {[]*os.File{datagrams}, "x", nil, "ListenStream="},
		"a connection":        {[]*os.File{connected}, "x", nil, "Accept=no"},
		"an abstract name":    {[]*os.File{nameless}, "x", nil, "has no path"},
		"two Unix sockets":    {[]*os.File{u.unix, u.unix}, "x:y", nil, "the second of its kind"},
		"two of TCP":          {[]*os.File{u.tcp, u.e2b}, "x:y", nil, "the second of its kind"},
		"a socket of its own": {[]*os.File{u.unix}, "x", []string{"--socket", u.path + "2"}, "ListenStream="},
		"a group of its own":  {[]*os.File{u.unix}, "x", []string{"--socket-group", "daemon"}, "SocketGroup="},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := u.command(t.TempDir(), tt.names, tt.files, tt.flags...)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), tt.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
