package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
	"sandbox/core/options"
)

// Usage returns what a box uses, from its cgroups on the host and the counts of
// its init.
func (c *Client) Usage(ctx context.Context, id string) (core.Usage, error) {
	b, err := c.get(id)
	if err != nil {
		return core.Usage{}, err
	}
	u, _ := c.measure(b)
	s, err := c.Stats(ctx, id)
	if err != nil && !fault.Is(err, fault.InvalidState) { // a stopped box has no counts
		return u, err
	}
	u.Commands, u.ExecErrors = s.Execs, s.ExecErrors
	u.StdinBytes, u.OutputBytes = s.Streams.Stdin, s.Streams.Output
	return u, nil
}

// Measure measures all boxes that are up; see [core.Boxes]. It asks neither the shim
// nor a box, so that a thousand boxes take a fraction of a second.
func (c *Client) Measure(ctx context.Context) ([]core.Measured, error) {
	boxes, err := c.up()
	if err != nil {
		return nil, err
	}
	all := make([]core.Measured, 0, len(boxes))
	for _, b := range boxes {
		if err := ctx.Err(); err != nil {
			return nil, fault.Of(err)
		}
		now := time.Now()
		if u, up := c.measure(b); up {
			all = append(all, core.Measured{Record: b.Record, Usage: u, At: now})
		}
	}
	return all, nil
}

// up returns the boxes that are up.
func (c *Client) up() ([]record.Box, error) {
	var boxes []record.Box
	if c.cache == nil || !c.cache.each(func(b record.Box) { boxes = append(boxes, b) }) {
		var err error
		if boxes, _, err = c.records.List(); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(boxes, func(b record.Box) bool { return !b.Status.Up() }), nil
}

// measure returns what the host knows of a box's use, and whether the box was up when
// all of it had been read.
func (c *Client) measure(b record.Box) (u core.Usage, up bool) {
	u = groupUsage(groupOf(b))
	u.DiskBytes = c.diskBytes(b)
	if !b.Status.Up() {
		return u, false
	}
	network := traffic(b)
	if b.Init.Ended() { // the PID may be another process's by now
		return u, false
	}
	u.Network = network
	return u, true
}

// diskBytes returns what the disk of a box takes up, or nil if it has none.
func (c *Client) diskBytes(b record.Box) *int64 {
	var st unix.Stat_t
	if b.Options.DiskSizeGB == 0 || unix.Lstat(filepath.Join(record.Dir(c.home, b.ID), layer.DiskFile), &st) != nil {
		return nil
	}
	bytes := st.Blocks * 512
	return &bytes
}

// boxInterface is the name of a box's network interface inside the box; see
// shim/network.
const boxInterface = "eth0"

// traffic returns the counters of the network interface of a box that is up, or nil if
// they are unknown. They are read as the box's init sees them, since this process may
// be in another network namespace than the shim.
func traffic(b record.Box) *core.Traffic {
	if b.Options.Network == options.NetworkNone {
		return &core.Traffic{}
	}
	devices, ok := lines(fmt.Sprintf("/proc/%d/net/dev", b.Init.PID))
	if !ok {
		return nil
	}
	return parseTraffic(devices, boxInterface)
}

// parseTraffic returns the counters of one interface in /proc/net/dev, or nil.
// Its line holds its name, eight counters of received traffic and eight of sent
// traffic, each with the bytes first.
func parseTraffic(devices, name string) *core.Traffic {
	for line := range strings.Lines(devices) {
		device, counts, _ := strings.Cut(line, ":")
		f := strings.Fields(counts)
		if strings.TrimSpace(device) == name && len(f) >= 16 {
			return &core.Traffic{Received: number(f[0]), Sent: number(f[8])}
		}
	}
	return nil
}
