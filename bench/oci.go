package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// oci is a peer that takes OCI bundles: runc or crun. Its bundles hold what its
// own `spec` command writes, but for the command, the terminal and the root.
type oci struct {
	path, name, version, why string
	root                     string // of its state
	bundles                  string
	rootfs                   string
	ns                       place
	seq                      atomic.Int64
}

const ociIsolation = "mount pid net ipc uts ns, cgroup, caps, masked paths; no user ns, overlay, seccomp"

func (o *oci) contestant(run func(context.Context) (time.Duration, error)) contestant {
	return contestant{name: o.name, version: o.version, isolation: ociIsolation, why: o.why, run: run}
}

// bundle makes a bundle that runs args, and gives its directory.
func (o *oci) bundle(ctx context.Context, name string, args ...string) (string, error) {
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

// run makes a contestant's run of `run` with a bundle, to the first byte.
func (o *oci) run(ctx context.Context, bundle string) (timing, error) {
	return o.command("run", "--bundle", bundle, o.newID()).run(ctx)
}

// start starts a container that lives until its conversation is closed, and
// is then removed by the runc or crun that runs it.
func (o *oci) start(ctx context.Context) (*conversation, string, error) {
	dir, err := o.bundle(ctx, "idle", "/bin/sh", "-c", "echo ready; exec cat")
	if err != nil {
		return nil, "", err
	}
	id := o.newID()
	c, err := converse(o.command("run", "--bundle", dir, id))
	return c, id, err
}

// exec runs args in a running container.
func (o *oci) exec(ctx context.Context, id string, args ...string) (timing, error) {
	return o.command(append([]string{"exec", id}, args...)...).run(ctx)
}

// close deletes whatever containers are left.
func (o *oci) close(ctx context.Context) error {
	left, err := os.ReadDir(o.root) // one directory a container
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, c := range left {
		errs = append(errs, o.do(ctx, "delete", "--force", c.Name()))
	}
	return errors.Join(append(errs, os.RemoveAll(o.root), o.ns.close())...)
}

func (o *oci) command(args ...string) command {
	return command{args: append([]string{o.path, "--root", o.root}, args...), ns: o.ns}
}

// do runs a command whose time does not matter.
func (o *oci) do(ctx context.Context, args ...string) error {
	_, err := o.command(args...).run(ctx)
	return err
}

// newID returns an id that names a cgroup too: no two tools may share one.
func (o *oci) newID() string { return fmt.Sprintf("%s-%d", filepath.Base(o.root), o.seq.Add(1)) }
