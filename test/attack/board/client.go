package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// daemon is a daemon on the home, which families attack as its clients.
type daemon struct {
	cmd     *exec.Cmd
	address string // host:port
	socket  string
	shared  string   // the directory of the host that clients over TCP may name
	trusted []string // where the certificate is that it trusts
}

// serve starts a daemon. The caller closes it.
func (b *bench) serve(ctx context.Context) (*daemon, error) {
	d := &daemon{socket: filepath.Join(b.home, "sandbox.sock"), shared: filepath.Join(b.dir, "shared")}
	if err := os.Mkdir(d.shared, 0o755); err != nil { //nolint:gosec // boxes are given it
		return nil, err
	}
	cert, key, err := certificate(b.dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.own(d.shared), b.own(cert), b.own(key)); err != nil {
		return nil, err
	}
	d.trusted = []string{"BOARD_CERTIFICATE=" + cert, "BOARD_KEY=" + key}
	d.cmd = b.command(ctx, filepath.Join(b.build, "sandbox"), "serve", "--listen", "127.0.0.1:0", "--host-root", d.shared, "--port-domain", "ports.test")
	d.cmd.Env = append(d.cmd.Env, "SSL_CERT_FILE="+cert)
	said, err := d.cmd.StderrPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	var heard []string
	for lines := bufio.NewScanner(said); lines.Scan(); {
		heard = append(heard, lines.Text())
		if _, places, ready := strings.Cut(lines.Text(), "sandbox: ready on http://"); ready {
			d.address, _, _ = strings.Cut(places, " ")
			go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the daemon
			return d, nil
		}
	}
	d.close()
	return nil, fmt.Errorf("the daemon is not ready: %s", strings.Join(heard, "\n"))
}

func (d *daemon) close() { _, _ = d.cmd.Process.Signal(unix.SIGTERM), d.cmd.Wait() }

// runAtClient runs the attacks of a family on the host, beside the daemon. They are told
// where all that they attack is, and what must stay as it is.
func (b *bench) runAtClient(ctx context.Context, f family, id string) (string, error) {
	scratch, err := os.MkdirTemp(b.dir, f.name)
	if err == nil {
		err = b.own(scratch)
	}
	if err != nil {
		return "", err
	}
	source, err := filepath.Abs(f.source)
	if err != nil {
		return "", err
	}
	cmd := b.command(ctx, "python3", "-B", source)
	cmd.Dir = scratch
	cmd.Env = append(cmd.Env, append(slices.Concat(f.exec, b.daemon.trusted),
		"BOARD_BUILD="+b.build, "BOARD_HOME="+b.home, "BOARD_BOX="+id, "BOARD_OUTSIDE="+b.host.tree, "BOARD_SECRET="+sentinelText,
		"BOARD_ADDRESS="+b.daemon.address, "BOARD_SOCKET="+b.daemon.socket, "BOARD_SHARED="+b.daemon.shared)...)
	out, err := cmd.Output()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		err = fmt.Errorf("%w: %s", err, ended.Stderr)
	}
	return string(out), err
}

// overhear opens the host's ears for a family of clients. It returns what tells of them,
// and what was heard when it is called. The caller calls it once.
func overhear() (told []string, reached func() []string, err error) {
	e, err := listen()
	if err != nil {
		return nil, nil, err
	}
	reached = func() (saw []string) {
		e.close()
		if n := e.seen.Load(); n > 0 {
			saw = append(saw, fmt.Sprintf("the host was reached %d times", n))
		}
		return saw
	}
	return []string{fmt.Sprintf("BOARD_PORT=%d", e.port), "BOARD_HOSTS=" + strings.Join(addresses(false), ",")}, reached, nil
}
