package fake

import (
	"context"
	"errors"
	"net"
	"strconv"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// Connect connects to a port of the host's own loopback.
func (e *Engine) Connect(ctx context.Context, boxID string, port int) (net.Conn, error) {
	if err := errors.Join(options.CheckPort(port), e.running(boxID)); err != nil {
		return nil, fault.Of(err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if ctx.Err() != nil {
		return nil, fault.Of(ctx.Err())
	}
	return conn, fault.Wrap(fault.PortUnreachable, err, "nothing listens on port %d of box %s", port, boxID)
}
