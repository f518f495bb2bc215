package core

import (
	"context"
	"time"

	"sandbox/core/options"
)

// Info is a box as JSON shows it, in C and over HTTP (contract, section 2).
// What is not set is null.
type Info struct {
	ID         string            `json:"id"`
	Name       *string           `json:"name"`
	Status     State             `json:"status"`
	State      StateInfo         `json:"state"`
	Image      *string           `json:"image"`
	RootfsPath *string           `json:"rootfs_path"`
	CPUs       int               `json:"cpus"`
	MemoryMiB  int               `json:"memory_mib"`
	DiskSizeGB *int              `json:"disk_size_gb"`
	Network    string            `json:"network"`
	WorkingDir *string           `json:"working_dir"`
	Env        map[string]string `json:"env,omitzero"` // nil in listings
	Volumes    []options.Volume  `json:"volumes"`
	Ports      []options.Port    `json:"ports"`
	AutoRemove bool              `json:"auto_remove"`
	Labels     map[string]string `json:"labels"`
	CreatedAt  time.Time         `json:"created_at"`
	UpdatedAt  time.Time         `json:"updated_at"`
	StartedAt  *time.Time        `json:"started_at"`
	StoppedAt  *time.Time        `json:"stopped_at"`
	Error      *Failure          `json:"error"`
}

// StateInfo is where a box is in its life.
type StateInfo struct {
	Status  State  `json:"status"`
	Running bool   `json:"running"`
	PID     *int   `json:"pid"` // of its init, on the host
	Reason  string `json:"reason,omitempty"`
}

// Info shows the box by itself.
func (r Record) Info() Info {
	i := r.Summary()
	i.Env = orEmpty(r.Options.Env)
	return i
}

// Summary shows the box in a listing: without its environment, which may hold
// what is not for every reader of a list.
func (r Record) Summary() Info {
	o := r.Options
	running := r.State == Running
	state := StateInfo{Status: r.State, Running: running, Reason: r.Reason}
	if running {
		state.PID = orNull(r.PID)
	}
	return Info{
		ID: r.ID, Name: orNull(o.Name), Status: r.State, State: state,
		Image: orNull(o.Image), RootfsPath: orNull(o.RootfsPath),
		CPUs: o.CPUs, MemoryMiB: o.MemoryMiB, DiskSizeGB: orNull(o.DiskSizeGB),
		Network: o.Network, WorkingDir: orNull(o.WorkingDir),
		Volumes: shown(o.Volumes), Ports: append([]options.Port{}, o.Ports...),
		AutoRemove: o.AutoRemove, Labels: orEmpty(o.Labels),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		StartedAt: utc(r.StartedAt), StoppedAt: utc(r.StoppedAt), Error: r.Error,
	}
}

// BoxMetrics is what is measured of a box. What is unknown is null.
type BoxMetrics struct {
	CPUPercent     *float64 `json:"cpu_percent"` // mean since the start; 100 is one CPU
	MemoryBytes    *int64   `json:"memory_bytes"`
	Commands       int64    `json:"commands_executed_total"`
	ExecErrors     int64    `json:"exec_errors_total"`
	BytesSent      *int64   `json:"bytes_sent_total"`
	BytesReceived  *int64   `json:"bytes_received_total"`
	CreateDuration *int64   `json:"total_create_duration_ms"`
	NetSent        *int64   `json:"network_bytes_sent"` // since the start, headers included
	NetReceived    *int64   `json:"network_bytes_received"`
}

// Metrics measures the box. Errors: BoxNotFound.
func (b *Box) Metrics(ctx context.Context) (BoxMetrics, error) {
	rec, err := b.Record(ctx)
	if err != nil {
		return BoxMetrics{}, err
	}
	u, err := b.Usage(ctx)
	if err != nil {
		return BoxMetrics{}, err
	}
	m := BoxMetrics{Commands: u.Commands, ExecErrors: u.ExecErrors, CreateDuration: b.r.createDuration(b.id)}
	if rec.State == Running && rec.StartedAt != nil {
		percent := 100 * u.CPU.Seconds() / time.Since(*rec.StartedAt).Seconds()
		m.CPUPercent, m.MemoryBytes = &percent, &u.MemoryBytes
	}
	if u.Network != nil {
		m.NetSent, m.NetReceived = &u.Network.Sent, &u.Network.Received
	}
	return m, nil
}

// createDuration returns the milliseconds that a create took, if this runtime
// did it.
func (r *Runtime) createDuration(id string) *int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, made := r.made[id]
	if !made {
		return nil
	}
	ms := c.took.Milliseconds()
	return &ms
}

// shown returns the volumes without what is the server's own business.
func shown(volumes []options.Volume) []options.Volume {
	all := append([]options.Volume{}, volumes...)
	for i := range all {
		all[i].Within = ""
	}
	return all
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
