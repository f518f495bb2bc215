package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// familyTime bounds the attacks of one family.
const familyTime = 5 * time.Minute

// bench is a home with an image, whose boxes are attacked.
type bench struct {
	build  string
	dir    string // has the home and the programs, and is open to all users
	home   string
	owner  *syscall.Credential // of the boxes; nil for who runs the board
	host   *host
	daemon *daemon // nil unless families attack as its clients
}

// openBench makes the home. The caller closes it.
func openBench(ctx context.Context, build string, owner *syscall.Credential) (*bench, error) {
	build, err := filepath.Abs(build)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "board") // which all users reach, whatever TMPDIR is
	if err != nil {
		return nil, err
	}
	b := &bench{build: build, dir: dir, home: filepath.Join(dir, "home"), owner: owner}
	if err = os.Chmod(dir, 0o755); err == nil { //nolint:gosec // users without rights are to try the home's own
		err = b.own(dir)
	}
	if err == nil {
		b.host, err = b.watchHost()
	}
	if err == nil {
		_, err = b.sandbox(ctx, "images", "import", "default", filepath.Join(build, "debian.tar"))
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() {
	if b.daemon != nil {
		b.daemon.close()
	}
	if b.host != nil {
		b.host.close()
	}
	_ = os.RemoveAll(b.dir)
}

// sandbox runs the command line and returns what it prints.
func (b *bench) sandbox(ctx context.Context, args ...string) (string, error) {
	out, err := b.command(ctx, filepath.Join(b.build, "sandbox"), append([]string{"--local"}, args...)...).Output()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		err = fmt.Errorf("sandbox %s: %w: %s", args[0], err, ended.Stderr)
	}
	return string(out), err
}

// command returns a command of the owner of the boxes.
func (b *bench) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+b.home, "SANDBOX_HELPER_DIR="+b.build, "HOME="+b.dir, "TMPDIR="+b.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: b.owner}
	return cmd
}

// own gives the owner of the boxes a file, or a directory with all that is in it.
func (b *bench) own(path string) error {
	if b.owner == nil {
		return nil
	}
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(b.owner.Uid), int(b.owner.Gid)))
	})
}

// attack runs the attacks of a family on a box of its own. What fails before they run is
// an attack that did not run.
func (b *bench) attack(ctx context.Context, f family) (r result) {
	r = result{family: f}
	if f.neighbour {
		args, reached, err := b.neighbour(ctx)
		if err != nil {
			return r.broken(err)
		}
		f.exec = append(args, f.exec...)
		defer func() { r.saw = append(r.saw, reached()...) }()
	}
	if f.where == atClient {
		heard, reached, err := overhear()
		if err != nil {
			return r.broken(err)
		}
		f.exec = heard
		defer func() { r.saw = append(r.saw, reached()...) }()
	}
	program, err := b.compile(ctx, f)
	if err != nil {
		return r.broken(err)
	}
	id, err := b.sandbox(ctx, append(append([]string{"create"}, f.box...), "default")...)
	if err != nil {
		return r.broken(err)
	}
	id = strings.TrimSpace(id)
	defer func() { _, _ = b.sandbox(context.WithoutCancel(ctx), "rm", "-f", id) }()
	said, err := b.run(ctx, f, program, id)
	r.read(said)
	if err != nil {
		r = r.broken(err)
	}
	if out, err := b.sandbox(ctx, "exec", id, "--", "echo", "alive"); err != nil || strings.TrimSpace(out) != "alive" {
		r.saw = append(r.saw, "the box has ended")
	}
	r.saw = append(r.saw, b.host.changes()...)
	return r
}

// run runs the program of a family and returns what it says.
func (b *bench) run(ctx context.Context, f family, program, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, familyTime)
	defer cancel()
	switch f.where {
	case onHost:
		return b.runOnHost(ctx, program, id)
	case atClient:
		return b.runAtClient(ctx, f, id)
	}
	if _, err := b.sandbox(ctx, "cp", program, id+":/tmp/attack"); err != nil {
		return "", err
	}
	return b.sandbox(ctx, append(append([]string{"exec"}, f.exec...), id, "--", "/tmp/attack")...)
}

// compile makes the program of a family, which needs nothing of the image. One in Python
// is its own program.
func (b *bench) compile(ctx context.Context, f family) (string, error) {
	if filepath.Ext(f.source) != ".c" {
		return f.source, nil
	}
	program := filepath.Join(b.dir, f.name)
	out, err := exec.CommandContext(ctx, "cc", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-o", program, f.source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile %s: %w\n%s", f.source, err, out)
	}
	return program, nil
}
