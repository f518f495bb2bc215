package contestants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"sandbox/bench/harness"
)

const podmanIsolation = "mount pid net ipc uts ns, cgroup, overlay, caps, seccomp, masked paths; no user ns; default bridge, NAT, published port"

// Podman is the peer for measurements that need images and networks. It is
// Debian's, with its default runtime, its default network (a bridge with NAT by
// iptables) and its default file system (overlay). It keeps everything below a
// directory of the run, or in a mount namespace and a network namespace that
// end with it.
type Podman struct {
	path, version, why string
	dir                string
	at                 harness.Place
	seq                atomic.Int64
}

// newPodman loads the image of archive. host is the network in which podman
// works.
func newPodman(ctx context.Context, b *Field, host harness.Place, archive string) *Podman {
	p := &Podman{dir: filepath.Join(b.Dir, "podman")}
	if p.path, p.version, p.why = FindTool(ctx, b, "podman"); p.why != "" {
		return p
	}
	mounts, err := harness.WithoutUnified("/run", "/var/lib")
	if err == nil {
		p.at = harness.Place{mounts[0], host[0]}
		err = errors.Join(os.MkdirAll(filepath.Join(p.dir, "networks"), 0o755), p.Do(ctx, "load", "--quiet", "--input", archive))
	}
	if err != nil {
		p.why = err.Error()
	}
	return p
}

// Contestant returns a contestant of this name that calls run with podman.
func (p *Podman) Contestant(name string, run func(context.Context) (time.Duration, error)) harness.Contestant {
	return harness.Contestant{Name: name, Version: p.version, Isolation: podmanIsolation, Why: p.why, Run: run}
}

func (p *Podman) command(args ...string) harness.Command {
	// The events and cgroups that systemd would otherwise manage are kept in
	// files here.
	global := []string{
		p.path, "--root", filepath.Join(p.dir, "root"), "--runroot", filepath.Join(p.dir, "run"), "--tmpdir", filepath.Join(p.dir, "tmp"),
		"--network-config-dir", filepath.Join(p.dir, "networks"), "--storage-driver", "overlay",
		"--cgroup-manager", "cgroupfs", "--events-backend", "file",
	}
	return harness.Command{Args: append(global, args...), NS: p.at}
}

// Do runs a command whose time does not matter.
func (p *Podman) Do(ctx context.Context, args ...string) error {
	_, err := p.command(args...).Run(ctx)
	return err
}

// Run returns the arguments of `podman run`, for the default bridge and with
// limits that a root user without CAP_SYS_RESOURCE may set.
func (p *Podman) Run(flags []string, cmd ...string) (name string, args []string) {
	name = fmt.Sprintf("%s-%d", filepath.Base(filepath.Dir(p.dir)), p.seq.Add(1))
	args = []string{"run", "--name", name, "--network", "podman", "--pull", "never", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"}
	args = append(append(args, flags...), LabImage)
	return name, append(args, cmd...)
}

// Remove removes a container at once.
func (p *Podman) Remove(ctx context.Context, name string) error {
	return p.Do(ctx, "rm", "--force", "--time", "0", name)
}

// close removes what podman has made.
func (p *Podman) close(ctx context.Context) error {
	if p == nil || p.at == nil {
		return nil
	}
	err := errors.Join(p.Do(ctx, "rm", "--all", "--force", "--time", "0"), p.at[0].Close())
	for _, pattern := range []string{"libpod_parent/*", "libpod_parent"} {
		left, _ := filepath.Glob("/sys/fs/cgroup/*/" + pattern) // only a bad pattern fails
		for _, dir := range left {
			_ = os.Remove(dir) // fails if another podman uses it, which is fine
		}
	}
	return err
}
