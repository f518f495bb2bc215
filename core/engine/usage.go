package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Usage returns what a box uses, from its cgroups on the host and the counts of
// its init.
func (c *Client) Usage(ctx context.Context, id string) (core.Usage, error) {
	b, err := c.get(id)
	if err != nil {
		return core.Usage{}, err
	}
	u := groupUsage(b.Slot())
	u.Network = traffic(b)
	s, err := c.stats(ctx, id)
	if err != nil && !fault.Is(err, fault.InvalidState) { // a stopped box has no counts
		return u, err
	}
	u.Commands, u.ExecErrors = s.Execs, s.ExecErrors
	u.StdinBytes, u.OutputBytes = s.Streams.Stdin, s.Streams.Output
	return u, nil
}

// stats returns what a box's init has counted. Errors: InvalidState (the box does
// not run, or is stopping).
func (c *Client) stats(ctx context.Context, id string) (s wire.Stats, err error) {
	conn, err := c.dialInit(id)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if err := conn.SetTimeout(answerTimeout); err != nil {
		return s, err
	}
	if err := exchange(ctx, conn, wire.TypeStats, wire.Measure{Read: c.reading.of(id)}, &s, nil); err != nil {
		return wire.Stats{}, c.explain(id, errors.Join(ctx.Err(), err))
	}
	return s, nil
}

// groupUsage returns the CPU time and memory that the box of a slot uses, from its cgroups
// on the host (cgroup2 or v1). A value that can't be read counts as 0.
func groupUsage(slot string) core.Usage {
	group := func(controller, file string) string {
		b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", controller, "sandbox", slot, file))
		if err != nil {
			return ""
		}
		return string(b)
	}
	if stat := group("", "cpu.stat"); stat != "" { // cgroup2
		return core.Usage{
			CPU:         time.Duration(field(stat, "usage_usec")) * time.Microsecond,
			MemoryBytes: number(group("", "memory.current")),
		}
	}
	return core.Usage{
		CPU:         time.Duration(number(group("cpuacct", "cpuacct.usage"))),
		MemoryBytes: number(group("memory", "memory.usage_in_bytes")),
	}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64) // an empty s counts as 0
	return n
}

// field returns the number after a name that begins a line, or 0 if there is
// none.
func field(s, name string) int64 {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return number(v)
		}
	}
	return 0
}

// boxInterface is the name of a box's network interface inside the box; see
// shim/network.
const boxInterface = "eth0"

// traffic returns the counters of a box's network interface, or nil if they are
// unknown. They are read as the box's init sees them, since this process may be
// in another network namespace than the shim.
func traffic(b record.Box) *core.Traffic {
	if !b.Status.Up() {
		return nil
	}
	if b.Options.Network == options.NetworkNone {
		return &core.Traffic{}
	}
	devices, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", b.Init.PID))
	if err != nil || b.Init.Ended() { // the PID may be another process's by now
		return nil
	}
	return parseTraffic(string(devices), boxInterface)
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
