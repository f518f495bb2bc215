package kubernetes

import (
	"context"
	"net"
)

// Connect connects to a port of a box; see [core.Ports].
func (e *Engine) Connect(ctx context.Context, id string, port int) (net.Conn, error) {
	return e.Through(ctx, id, port)
}
