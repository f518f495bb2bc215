package client

import (
	"context"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core/options"
)

// Share makes a link that leads people without a key to a TCP port of a box, for a time
// of whole seconds up to 30 days; 0 is the server's default, an hour. It ends with the
// box, too. Errors: BoxNotFound, InvalidArgument, Unavailable (no browser can reach the
// server).
func (c *Client) Share(ctx context.Context, box string, port int, d time.Duration) (s api.Share, err error) {
	if err := options.CheckPort(port); err != nil {
		return s, err
	}
	path, err := c.boxPath(box, ":share")
	if err != nil {
		return s, err
	}
	body := map[string]any{"port": port}
	if d != 0 {
		body["expires_in_seconds"] = int64(d / time.Second)
	}
	return s, c.call(ctx, request{method: http.MethodPost, path: path, body: body, again: true}, &s)
}
