package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

const podmanIsolation = "mount pid net ipc uts ns, cgroup, overlay, caps, seccomp, masked paths; no user ns; default bridge, NAT, published port"

// podman is the peer of what needs images and networks: Debian's, with its
// default runtime, its default network (a bridge with NAT by iptables) and its
// default file system (overlay). All that it keeps is below a directory of the
// run, or in a mount and a network namespace that end with it.
type podman struct {
	path, version, why string
	dir                string
	at                 place
	seq                atomic.Int64
}

// newPodman loads the image of archive; host is the network it works in.
func newPodman(ctx context.Context, b *bench, host place, archive string) *podman {
	p := &podman{dir: filepath.Join(b.dir, "podman")}
	if p.path, p.version, p.why = findTool(ctx, b, "podman"); p.why != "" {
		return p
	}
	mounts, err := withoutUnified("/run", "/var/lib")
	if err == nil {
		p.at = place{mounts[0], host[0]}
		err = errors.Join(os.MkdirAll(filepath.Join(p.dir, "networks"), 0o755), p.do(ctx, "load", "--quiet", "--input", archive))
	}
	if err != nil {
		p.why = err.Error()
	}
	return p
}

func (p *podman) contestant(name string, run func(context.Context) (time.Duration, error)) contestant {
	return contestant{name: name, version: p.version, isolation: podmanIsolation, why: p.why, run: run}
}

func (p *podman) command(args ...string) command {
	// The events and the cgroups that systemd would keep are files here.
	global := []string{
		p.path, "--root", filepath.Join(p.dir, "root"), "--runroot", filepath.Join(p.dir, "run"), "--tmpdir", filepath.Join(p.dir, "tmp"),
		"--network-config-dir", filepath.Join(p.dir, "networks"), "--storage-driver", "overlay",
		"--cgroup-manager", "cgroupfs", "--events-backend", "file",
	}
	return command{args: append(global, args...), ns: p.at}
}

// do runs a command whose time does not matter.
func (p *podman) do(ctx context.Context, args ...string) error {
	_, err := p.command(args...).run(ctx)
	return err
}

// run makes the arguments of `podman run`, for the default bridge and with
// limits that a root without CAP_SYS_RESOURCE may set.
func (p *podman) run(flags []string, cmd ...string) (name string, args []string) {
	name = fmt.Sprintf("%s-%d", filepath.Base(filepath.Dir(p.dir)), p.seq.Add(1))
	args = []string{"run", "--name", name, "--network", "podman", "--pull", "never", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"}
	args = append(append(args, flags...), labImage)
	return name, append(args, cmd...)
}

func (p *podman) remove(ctx context.Context, name string) error {
	return p.do(ctx, "rm", "--force", "--time", "0", name)
}

// close removes what podman has made.
func (p *podman) close(ctx context.Context) error {
	if p == nil || p.at == nil {
		return nil
	}
	err := errors.Join(p.do(ctx, "rm", "--all", "--force", "--time", "0"), p.at[0].Close())
	for _, pattern := range []string{"libpod_parent/*", "libpod_parent"} {
		left, _ := filepath.Glob("/sys/fs/cgroup/*/" + pattern) // only a bad pattern fails
		for _, dir := range left {
			_ = os.Remove(dir) // fails where another podman uses it
		}
	}
	return err
}
