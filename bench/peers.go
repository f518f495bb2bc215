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

// peers are the tools that ours is measured beside. One that isn't installed
// says so in its row.
type peers struct {
	runc, crun *oci
	bwrap      bwrap
}

// runcVersion is the runc whose figures the bars name, the one whose
// libcontainer ours is made of.
const runcVersion = "1.5.2"

func findPeers(ctx context.Context, b *bench) peers {
	p := peers{runc: newOCI(ctx, b, "runc"), crun: newOCI(ctx, b, "crun"), bwrap: newBwrap(ctx, b)}
	if p.runc.why == "" && p.runc.version != runcVersion {
		p.runc.why = fmt.Sprintf("is not version %s (make bench-peers builds it)", runcVersion)
	}
	if p.crun.why == "" && hybrid() {
		ns, err := withoutUnified()
		if err != nil {
			p.crun.why = "refuses this host's hybrid cgroups: " + err.Error()
		}
		p.crun.ns = ns
	}
	return p
}

func (p peers) close(ctx context.Context) error {
	return errors.Join(p.runc.close(ctx), p.crun.close(ctx))
}

func newOCI(ctx context.Context, b *bench, name string) *oci {
	o := &oci{
		name: name, rootfs: b.rootfs,
		root:    filepath.Join("/run", filepath.Base(b.dir)+"-"+name), // where both keep their state by default
		bundles: filepath.Join(b.dir, name),
	}
	o.path, o.version, o.why = findTool(ctx, b, name)
	return o
}

// findTool looks for a peer among the built ones, then on PATH, and asks for
// its version: the last word of the first line.
func findTool(ctx context.Context, b *bench, name string) (path, version, why string) {
	path = filepath.Join(b.tools, "peers", name)
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

// bwrap is bubblewrap: it has no cgroups and no exec.
type bwrap struct{ path, version, why, rootfs string }

func newBwrap(ctx context.Context, b *bench) bwrap {
	w := bwrap{rootfs: b.rootfs}
	w.path, w.version, w.why = findTool(ctx, b, "bwrap")
	return w
}

func (w bwrap) contestant(run func(context.Context) (time.Duration, error)) contestant {
	return contestant{
		name: "bwrap", version: w.version, why: w.why, run: run,
		isolation: "user mount pid net ipc uts cgroup ns, caps; no cgroup, overlay, seccomp, masked paths",
	}
}

// run runs args in a new sandbox of its own.
func (w bwrap) run(ctx context.Context, args ...string) (timing, error) {
	flags := []string{w.path, "--unshare-all", "--die-with-parent", "--ro-bind", w.rootfs, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--"}
	return command{args: append(flags, args...)}.run(ctx)
}
