package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// familyTime bounds the attacks of one family.
const familyTime = 2 * time.Minute

// bench is a home with an image, whose boxes are attacked.
type bench struct {
	build, home string
	host        *host
}

// openBench makes the home. The caller closes it.
func openBench(ctx context.Context, build string) (*bench, error) {
	build, err := filepath.Abs(build)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "board") // short: the name of a socket is
	if err != nil {
		return nil, err
	}
	b := &bench{build: build, home: home}
	if b.host, err = watchHost(home); err == nil {
		_, err = b.sandbox(ctx, "images", "import", "default", filepath.Join(build, "debian.tar"))
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() {
	if b.host != nil {
		b.host.close()
	}
	_ = os.RemoveAll(b.home)
}

// sandbox runs the command line and returns what it prints.
func (b *bench) sandbox(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.build, "sandbox"), append([]string{"--local"}, args...)...)
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+b.home, "SANDBOX_HELPER_DIR="+b.build)
	out, err := cmd.Output()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		err = fmt.Errorf("sandbox %s: %w: %s", args[0], err, ended.Stderr)
	}
	return string(out), err
}

// attack runs the attacks of a family in a box of its own. What fails before they run is
// an attack that did not run.
func (b *bench) attack(ctx context.Context, f family) result {
	r := result{family: f}
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
	if _, err := b.sandbox(ctx, "cp", program, id+":/tmp/attack"); err != nil {
		return r.broken(err)
	}
	within, cancel := context.WithTimeout(ctx, familyTime)
	defer cancel()
	said, err := b.sandbox(within, append(append([]string{"exec"}, f.exec...), id, "--", "/tmp/attack")...)
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

// compile makes the program of a family, which needs nothing of the image. One in Python
// is its own program.
func (b *bench) compile(ctx context.Context, f family) (string, error) {
	if filepath.Ext(f.source) != ".c" {
		return f.source, nil
	}
	program := filepath.Join(b.home, f.name)
	out, err := exec.CommandContext(ctx, "cc", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-o", program, f.source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile %s: %w\n%s", f.source, err, out)
	}
	return program, nil
}
