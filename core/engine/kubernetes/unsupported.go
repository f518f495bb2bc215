package kubernetes

import (
	"context"
	"fmt"
	"net/netip"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// cannot returns why something can't be done with a box: what a pod can't do, if the box
// is there.
func (e *Engine) cannot(ctx context.Context, id, what string) error {
	if _, _, err := e.find(ctx, id); err != nil {
		return err
	}
	return fault.New(fault.Unsupported, "boxes of a cluster can't be %s", what)
}

// Pause is refused.
func (e *Engine) Pause(ctx context.Context, id string, _ bool) (core.Record, error) {
	return core.Record{}, e.cannot(ctx, id, "paused")
}

// Resume is refused.
func (e *Engine) Resume(ctx context.Context, id string) (core.Record, error) {
	return core.Record{}, e.cannot(ctx, id, "paused and resumed")
}

// Snapshot is refused.
func (e *Engine) Snapshot(ctx context.Context, id, _ string) (core.Taken, error) {
	return core.Taken{}, e.cannot(ctx, id, "taken snapshots of")
}

// Finish is refused.
func (e *Engine) Finish(ctx context.Context, id, _ string) (core.Image, error) {
	return core.Image{}, e.cannot(ctx, id, "made into images")
}

// Rollback is refused.
func (e *Engine) Rollback(ctx context.Context, id string, _ []string) (core.Record, error) {
	return core.Record{}, e.cannot(ctx, id, "rolled back")
}

// Diff is refused.
func (e *Engine) Diff(ctx context.Context, id string, _ core.DiffRequest) ([]api.Change, bool, error) {
	return nil, false, e.cannot(ctx, id, "compared with their images")
}

// refuse refuses what a pod can't have. Errors: Unsupported, with the fields.
func (e *Engine) refuse(o options.Box) error {
	noDisk := e.config.DiskClass == ""
	var p document.Problems
	code := fault.Unsupported.Row().Code
	p.When(o.RootfsPath != "", "rootfs_path", code, "is a directory of one host: boxes of a cluster have images")
	for i, v := range o.Volumes {
		p.When(v.HostPath != "" && len(e.config.HostRoots) == 0, fmt.Sprintf("volumes[%d].host_path", i), code,
			"is a path of the nodes, which boxes of a cluster see only where the server was started with --host-root: use a claim")
	}
	p.When(len(o.Ports) > 0 && e.config.PublishService == "", "ports", code, "are published only where --publish-service says how: reach them through the server, at /v1/boxes/ID/ports/PORT")
	for i, port := range o.Ports {
		ip, _ := netip.ParseAddr(port.HostIP) // that it is one was checked before
		p.When(port.HostIP != "" && !ip.IsUnspecified(), fmt.Sprintf("ports[%d].host_ip", i), code, "is an address of one host: the cluster chooses that of a Service")
	}
	p.When(noDisk && o.IdleSeconds > 0, "idle_seconds", code, "needs boxes that can be stopped, as they can with serve --disk-class (kubernetes.disk_class): use ttl_seconds")
	p.When(o.OnExpiry == options.ExpiryPause, "on_expiry", code, "is pause, and boxes of a cluster are not paused")
	p.When(noDisk && o.AutoStart, "auto_start", code, "needs boxes that can be stopped, as they can with serve --disk-class (kubernetes.disk_class)")
	p.When(len(o.Command) > 0 || o.ImageCommand, "command", code, "is not kept running in boxes of a cluster: run it")
	return p.Err(fault.Unsupported)
}
