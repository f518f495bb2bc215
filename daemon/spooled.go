package daemon

import (
	"context"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// spooled is the runtime as the spool needs it when it adopts the execs that an
// earlier daemon started.
type spooled struct {
	*core.Runtime
	until time.Time // when the boxes have seen that the earlier daemon was killed
}

// A connection of a daemon that was killed ends a little later in a pod than here, above
// all through the API server. For unseen the exec seems to have its reader still.
const (
	unseen = 5 * time.Second
	retry  = 50 * time.Millisecond // nothing tells when the pod has seen it
)

// Attach attaches to an exec of a box, by their ids, behind the output that is spooled. It
// waits until the box has seen that the daemon that followed it was killed.
func (s spooled) Attach(ctx context.Context, box, exec string, have core.Position) (*core.Exec, error) {
	b, err := s.Get(ctx, box)
	if err != nil {
		return nil, err
	}
	for {
		x, err := b.AttachBehind(ctx, exec, have)
		if !fault.Is(err, fault.InvalidState) || time.Now().After(s.until) {
			return x, err
		}
		if status, missing := s.Status(ctx, box); missing != nil || !status.Up() {
			return x, err
		}
		select {
		case <-ctx.Done():
			return x, err
		case <-time.After(retry):
		}
	}
}

// Exec returns what the init of a box knows of an exec.
func (s spooled) Exec(ctx context.Context, box, exec string) (api.Exec, error) {
	b, err := s.Get(ctx, box)
	if err != nil {
		return api.Exec{}, err
	}
	return b.ExecRecord(ctx, exec)
}

// Status returns the status of a box.
func (s spooled) Status(ctx context.Context, box string) (api.BoxStatus, error) {
	rec, err := s.Find(ctx, box)
	return rec.Status, err
}

// follow brings the spool and the log table up to date after boxes have changed, and logs
// what is wrong with them.
func (d *Daemon) follow(ctx context.Context, removed bool) {
	if removed {
		d.sweep(ctx)
	}
	recs, err := d.runtime.List(ctx)
	if err != nil {
		d.Log.WarnContext(ctx, "events and output of boxes are not written to the log table", "error", err)
		return
	}
	d.nameFlapping(recs)
	if d.logs.boxes != nil {
		d.logs.boxes.Boxes(recs)
	}
}

// sweep removes the output of boxes that no longer exist.
func (d *Daemon) sweep(ctx context.Context) {
	if err := d.spool.Sweep(ctx, spooled{Runtime: d.runtime}); err != nil {
		d.Log.ErrorContext(ctx, "the output of removed boxes could not be removed", "error", err)
	}
}

// lowSpace logs which boxes take most of a home's disk that gets full.
func (d *Daemon) lowSpace(freeMiB uint64, largest string, err error) {
	d.Log.Warn("the home's disk gets full: remove boxes, or bound those made from now on with disk_ceiling_gb in config.toml",
		"free_mib", freeMiB, "largest", largest, "error", err)
}
