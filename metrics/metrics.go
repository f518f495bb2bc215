// Package metrics keeps what boxes used over time. A [History] measures all boxes of a
// home at an interval, has the samples stored (in a table of the log engine, or in
// memory), and answers series of them.
package metrics

import (
	"context"
	"time"

	"sandbox/core"
)

// Sample is what was measured of a box at a moment, in a form that is small: there are
// many. Unknown stands for what is not known.
type Sample struct {
	Box        string // its id
	At         int64  // milliseconds since 1970
	Started    int64  // when the box was started, likewise; counters count since then
	CPU        int64  // nanoseconds, a counter
	Memory     int64  // bytes
	Cache      int64  // bytes of Memory
	Processes  int64
	Disk       int64 // bytes
	DiskRead   int64 // bytes, a counter
	DiskWrite  int64 // likewise
	NetSent    int64 // likewise
	NetReceive int64 // likewise
}

// Unknown is a value of a Sample that could not be measured.
const Unknown = -1

// sampleOf returns the sample of what was measured.
func sampleOf(m core.Measured) Sample {
	s := Sample{
		Box: m.ID, At: m.At.UnixMilli(), CPU: m.CPU.Nanoseconds(),
		Memory: m.MemoryBytes, Cache: m.CacheBytes, Processes: m.Processes,
		Disk: Unknown, DiskRead: Unknown, DiskWrite: Unknown, NetSent: Unknown, NetReceive: Unknown,
	}
	if m.StartedAt != nil {
		s.Started = m.StartedAt.UnixMilli()
	}
	if m.DiskBytes != nil {
		s.Disk = *m.DiskBytes
	}
	if m.Disk != nil {
		s.DiskRead, s.DiskWrite = m.Disk.Read, m.Disk.Written
	}
	if m.Network != nil {
		s.NetSent, s.NetReceive = m.Network.Sent, m.Network.Received
	}
	return s
}

// span says which samples of a box are wanted. Times are milliseconds since 1970.
type span struct {
	box      string
	from, to int64 // from <= At < to
	step     int64
}

// store keeps samples.
type store interface {
	// add stores samples of one moment. One goroutine calls it. What it can't store now it stores with
	// the next ones, which may be none, or at last drops, and says so in the log.
	add(ctx context.Context, samples []Sample)
	// read returns one sample for each step that has any, oldest first, as fold
	// makes them. A step begins at each multiple of its length. Errors:
	// Unavailable, Upstream, Timeout.
	read(ctx context.Context, s span) ([]Sample, error)
}

// fold makes one sample of those of each step. They are of one box, oldest first.
// Counters are those of the last one; of what goes up and down the largest counts,
// since a peak is what people look for.
func fold(samples []Sample, step int64) []Sample {
	var all []Sample
	for _, s := range samples {
		if last := len(all) - 1; last >= 0 && all[last].At/step == s.At/step {
			before := all[last]
			s.Memory, s.Cache, s.Processes, s.Disk = max(s.Memory, before.Memory), max(s.Cache, before.Cache),
				max(s.Processes, before.Processes), max(s.Disk, before.Disk)
			all[last] = s
			continue
		}
		all = append(all, s)
	}
	return all
}

// moment returns the time of milliseconds since 1970.
func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
