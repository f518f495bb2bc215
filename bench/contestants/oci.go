package contestants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"sandbox/bench/harness"
)

// OCI is a peer that runs OCI bundles: runc or crun. A bundle holds what the
// peer's own `spec` command writes, except for the command, the terminal and
// the root.
type OCI struct {
	path, name, version, why string
	root                     string // directory of its state
	bundles                  string
	rootfs                   string
	ns                       harness.Place
	seq                      atomic.Int64
}

const ociIsolation = "mount pid net ipc uts ns, cgroup, caps, masked paths; no user ns, overlay, seccomp"

// Contestant returns a contestant that calls run with the peer.
func (o *OCI) Contestant(run func(context.Context) (time.Duration, error)) harness.Contestant {
	return harness.Contestant{Name: o.name, Version: o.version, Isolation: ociIsolation, Why: o.why, Run: run}
}

// bundle makes a bundle that runs args, and returns its directory.
func (o *OCI) bundle(ctx context.Context, name string, args ...string) (string, error) {
	dir := filepath.Join(o.bundles, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "config.json")
	if err := os.RemoveAll(file); err != nil { // spec refuses to overwrite
		return "", err
	}
	if err := o.do(ctx, "spec", "--bundle", dir); err != nil {
		return "", err
	}
	doc, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var spec map[string]any
	if err := json.Unmarshal(doc, &spec); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	spec["root"] = map[string]any{"path": o.rootfs, "readonly": true}
	process, _ := spec["process"].(map[string]any)
	process["args"], process["terminal"] = args, false
	if doc, err = json.Marshal(spec); err != nil {
		return "", err
	}
	return dir, os.WriteFile(file, doc, 0o644)
}

// run runs the peer's `run` with a bundle, up to the first byte.
func (o *OCI) run(ctx context.Context, bundle string) (harness.Timing, error) {
	return o.command("run", "--bundle", bundle, o.newID()).Run(ctx)
}

// start starts a container that lives until its conversation is closed. The
// runc or crun that runs the container then removes it.
func (o *OCI) start(ctx context.Context) (*harness.Conversation, string, error) {
	dir, err := o.bundle(ctx, "idle", "/bin/sh", "-c", "echo ready; exec cat")
	if err != nil {
		return nil, "", err
	}
	id := o.newID()
	c, err := harness.Converse(o.command("run", "--bundle", dir, id))
	return c, id, err
}

// exec runs args in a running container.
func (o *OCI) exec(ctx context.Context, id string, args ...string) (harness.Timing, error) {
	return o.command(append([]string{"exec", id}, args...)...).Run(ctx)
}

// close deletes whatever containers are left.
func (o *OCI) close(ctx context.Context) error {
	left, err := os.ReadDir(o.root) // one directory per container
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, c := range left {
		errs = append(errs, o.do(ctx, "delete", "--force", c.Name()))
	}
	return errors.Join(append(errs, os.RemoveAll(o.root), o.ns.Close())...)
}

func (o *OCI) command(args ...string) harness.Command {
	return harness.Command{Args: append([]string{o.path, "--root", o.root}, args...), NS: o.ns}
}

// do runs a command whose time does not matter.
func (o *OCI) do(ctx context.Context, args ...string) error {
	_, err := o.command(args...).Run(ctx)
	return err
}

// newID returns an id that also names a cgroup, so two tools must never have
// the same.
func (o *OCI) newID() string { return fmt.Sprintf("%s-%d", filepath.Base(o.root), o.seq.Add(1)) }

// Creates returns a contestant that runs a new container up to its first byte.
// The container's end and removal are not in the time.
func (o *OCI) Creates(ctx context.Context) harness.Contestant {
	return o.hello(ctx, func(t harness.Timing) time.Duration { return t.First })
}

// Lives returns a contestant that runs a new container to its end and removal.
func (o *OCI) Lives(ctx context.Context) harness.Contestant {
	return o.hello(ctx, func(t harness.Timing) time.Duration { return t.End })
}

// hello returns a contestant that runs a new container, and tells one of the two times.
func (o *OCI) hello(ctx context.Context, which func(harness.Timing) time.Duration) harness.Contestant {
	var bundle string
	if o.why == "" {
		var err error
		if bundle, err = o.bundle(ctx, "hello", Hello...); err != nil {
			o.why = err.Error()
		}
	}
	return o.Contestant(func(ctx context.Context) (time.Duration, error) {
		t, err := o.run(ctx, bundle)
		return which(t), err
	})
}
