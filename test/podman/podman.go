// Package podman runs Debian's podman in tests, with a storage of its own.
package podman

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandbox/test/boxes"
)

// Podman is a podman with a storage of its own, in Dir, which ends with the test.
type Podman struct {
	Dir string
	t   *testing.T
}

// New returns a podman. It runs nothing yet.
func New(t *testing.T) Podman {
	t.Helper()
	p := Podman{t.TempDir(), t}
	t.Cleanup(func() {
		boxes.Await(t, "podman, which cleans up beside a command that has ended", func() bool {
			return exec.Command("pgrep", "--full", p.Dir).Run() != nil
		})
		for _, pattern := range []string{"libpod_parent/*", "libpod_parent"} {
			left, _ := filepath.Glob("/sys/fs/cgroup/*/" + pattern)
			for _, dir := range left {
				_ = os.Remove(dir) // fails if another podman uses it, which is fine
			}
		}
	})
	return p
}

// Do runs podman and returns what it prints. It works in whatever cgroups and file
// systems the host has, which is why its runtime is runc and its driver vfs.
func (p Podman) Do(args ...string) string {
	p.t.Helper()
	at := func(name string) string { return filepath.Join(p.Dir, name) }
	args = append([]string{
		"--root", at("root"), "--runroot", at("run"), "--tmpdir", at("tmp"), "--storage-driver", "vfs",
		"--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", "runc",
	}, args...)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(p.t.Context(), "podman", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("podman (apt-get install podman runc): %v: %s", err, errs.String())
	}
	return out.String()
}

// Run runs the command of an image, or another one, and returns what it prints.
func (p Podman) Run(image string, cmd ...string) string {
	p.t.Helper()
	return p.Do(append([]string{"run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", image}, cmd...)...)
}
