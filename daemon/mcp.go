package daemon

import (
	"context"
	"time"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/mcp"
)

// MCP is the table [mcp] of the configuration file: the limits of the tools for
// language models. A setting that is left out, or is 0, has its default.
type MCP struct {
	Image      string        `toml:"image"`
	CPUs       int           `toml:"cpus"`
	MemoryMiB  int           `toml:"memory_mib"`
	DiskSizeGB int           `toml:"disk_size_gb"`
	Network    string        `toml:"network"`
	MaxBoxes   int           `toml:"max_boxes"`
	Timeout    time.Duration `toml:"timeout"`
	MaxTimeout time.Duration `toml:"max_timeout"`
	MaxOutput  int           `toml:"max_output"`
	Share      []string      `toml:"share"`
	Idle       time.Duration `toml:"idle"`
}

// Read reads the table, which has been decoded as TOML already, into m. It returns
// an error that names a setting that does not exist.
func (m *MCP) Read(table any) error { return readTable(table, m) }

// limits returns the limits with defaults for the settings that are 0.
func (m MCP) limits() mcp.Limits {
	l := mcp.DefaultLimits()
	set(&l.Box.Image, m.Image)
	set(&l.Box.CPUs, m.CPUs)
	set(&l.Box.MemoryMiB, m.MemoryMiB)
	set(&l.Box.DiskSizeGB, m.DiskSizeGB)
	set(&l.Box.Network, m.Network)
	set(&l.MaxBoxes, m.MaxBoxes)
	set(&l.Timeout, m.Timeout)
	set(&l.MaxTimeout, m.MaxTimeout)
	set(&l.MaxOutput, m.MaxOutput)
	set(&l.Idle, m.Idle)
	l.Shared = m.Share
	return l
}

type inProcess = backend.Boxes // under a name that none of its methods has

// toolBoxes are the boxes of the daemon as the tools for language models have them:
// what is made ends with the daemon, even if that is killed, and what commands print
// goes to the log table too.
type toolBoxes struct {
	inProcess
	host  *local.Host
	lines func(api.Exec) (add func(stderr bool, p []byte), end func()) // nil for no logs
}

func newToolBoxes(host *local.Host, logs logEngine) toolBoxes {
	return toolBoxes{backend.OnHost(host), host, logs.lines()}
}

// CreateBox makes a box.
func (t toolBoxes) CreateBox(ctx context.Context, o options.Box) (api.Box, error) {
	_, rec, err := t.host.CreateOwned(ctx, o)
	if err != nil {
		return api.Box{}, err
	}
	return rec.Info(), nil
}

// Run starts a command. All that may fail comes before its start: a command that runs
// must not be left behind.
func (t toolBoxes) Run(ctx context.Context, ref string, o options.Exec) (backend.Command, error) {
	if t.lines == nil {
		return t.inProcess.Run(ctx, ref, o)
	}
	box, err := t.host.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	c, err := t.inProcess.Run(ctx, box.ID(), o)
	if err != nil {
		return nil, err
	}
	add, end := t.lines(api.Exec{ID: c.ID(), BoxID: box.ID(), TTY: o.TTY})
	return recorded{c, add, end}, nil
}

// recorded is a command whose output goes to the log table too.
type recorded struct {
	backend.Command
	add func(stderr bool, p []byte)
	end func()
}

// Reader returns a reader that records what it reads.
func (r recorded) Reader(ctx context.Context) (backend.Reader, error) {
	reader, err := r.Command.Reader(ctx)
	return recordedReader{reader, r.add}, err
}

// Close ends the record.
func (r recorded) Close() error {
	r.end()
	return r.Command.Close()
}

type recordedReader struct {
	backend.Reader
	add func(stderr bool, p []byte)
}

// Read reads output and records it.
func (r recordedReader) Read(buf []byte) (n int, stderr bool, err error) {
	n, stderr, err = r.Reader.Read(buf)
	if n > 0 {
		r.add(stderr, buf[:n])
	}
	return n, stderr, err
}
