package kubernetes

import (
	"context"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
)

// A connection of a program that was killed ends a little later in the pod than here,
// above all through the API server. For unseen the exec seems to have its reader still.
const (
	unseen = 5 * time.Second
	retry  = 50 * time.Millisecond // nothing tells when the pod has seen it
)

// Attach takes over an exec; see [core.Execs]. A caller that has output of it already
// follows one that was killed, and waits until the pod has seen that.
func (e *Engine) Attach(ctx context.Context, id, execID string, have *core.Position) (*core.Process, error) {
	for end := time.Now().Add(unseen); ; {
		p, err := e.Client.Attach(ctx, id, execID, have)
		if have == nil || !fault.Is(err, fault.InvalidState) || time.Now().After(end) {
			return p, err
		}
		if rec, missing := e.Get(ctx, id); missing != nil || !rec.Status.Up() {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, err
		case <-time.After(retry):
		}
	}
}
