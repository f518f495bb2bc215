package contestants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sandbox/bench/harness"
)

// Peers are the tools with which ours is compared. The row of one that isn't
// installed says so.
type Peers struct {
	Runc, Crun *OCI
	Bwrap      Bwrap
}

// runcVersion is the version of runc to whose figures the bars refer. Ours uses
// the libcontainer of the same version.
const runcVersion = "1.5.2"

func findPeers(ctx context.Context, b *Field) Peers {
	p := Peers{Runc: newOCI(ctx, b, "runc"), Crun: newOCI(ctx, b, "crun"), Bwrap: newBwrap(ctx, b)}
	if p.Runc.why == "" && p.Runc.version != runcVersion {
		p.Runc.why = fmt.Sprintf("is not version %s (make bench-peers builds it)", runcVersion)
	}
	if p.Crun.why == "" && harness.Hybrid() {
		ns, err := harness.WithoutUnified()
		if err != nil {
			p.Crun.why = "refuses this host's hybrid cgroups: " + err.Error()
		}
		p.Crun.ns = ns
	}
	return p
}

func (p Peers) close(ctx context.Context) error {
	return errors.Join(p.Runc.close(ctx), p.Crun.close(ctx))
}

func newOCI(ctx context.Context, b *Field, name string) *OCI {
	o := &OCI{
		name: name, rootfs: b.Rootfs,
		root:    filepath.Join("/run", filepath.Base(b.Dir)+"-"+name), // where both keep their state by default
		bundles: filepath.Join(b.Dir, name),
	}
	o.path, o.version, o.why = FindTool(ctx, b, name)
	return o
}

// FindTool looks for a peer among those that were built here, then on PATH. It
// also returns the peer's version: the last word of the first line that it
// prints when asked for it.
func FindTool(ctx context.Context, b *Field, name string) (path, version, why string) {
	path = filepath.Join(b.Tools, "peers", name)
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(name); err != nil {
			return "", "", "is not installed (make bench-peers)"
		}
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", "", err.Error()
	}
	line, _, _ := strings.Cut(string(said), "\n")
	return path, line[strings.LastIndex(line, " ")+1:], ""
}

// Bwrap is bubblewrap: it has no cgroups and no exec.
type Bwrap struct{ path, version, why, rootfs string }

func newBwrap(ctx context.Context, b *Field) Bwrap {
	w := Bwrap{rootfs: b.Rootfs}
	w.path, w.version, w.why = FindTool(ctx, b, "bwrap")
	return w
}

// Creates returns a contestant that runs a command in a new sandbox up to its first
// byte.
func (w Bwrap) Creates() harness.Contestant {
	return harness.Contestant{
		Name: "bwrap", Version: w.version, Why: w.why,
		Isolation: "user mount pid net ipc uts cgroup ns, caps; no cgroup, overlay, seccomp, masked paths",
		Run: func(ctx context.Context) (time.Duration, error) {
			t, err := w.run(ctx, Hello...)
			return t.First, err
		},
	}
}

// run runs args in a new sandbox.
func (w Bwrap) run(ctx context.Context, args ...string) (harness.Timing, error) {
	flags := []string{w.path, "--unshare-all", "--die-with-parent", "--ro-bind", w.rootfs, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--"}
	return harness.Command{Args: append(flags, args...)}.Run(ctx)
}
