package core

import (
	"cmp"
	"context"
	"time"

	"sandbox/api"
	"sandbox/core/options"
)

// Info returns the document that shows one box in full.
func (r Record) Info() api.Box {
	i := r.Summary()
	i.Env = orEmpty(r.Options.Env)
	return i
}

// Summary returns the document that shows the box in a list. It leaves out the
// environment, which may hold secrets that not every reader of a list may see.
func (r Record) Summary() api.Box {
	o := r.Options
	state := api.BoxState{Status: r.Status, Running: r.Status == api.Running, Reason: r.Reason}
	if r.Status.Up() {
		state.PID = orNull(r.PID)
	}
	state.Command, state.Health = r.Command, r.Health
	b := api.Box{
		ID: r.ID, Name: orNull(o.Name), Status: r.Status, State: state,
		Image: orNull(o.Image), RootfsPath: orNull(o.RootfsPath),
		CPUs: o.CPUs, MemoryMiB: o.MemoryMiB, DiskSizeGB: orNull(o.DiskSizeGB),
		Network: o.Network, WorkingDir: orNull(o.WorkingDir),
		Volumes: shown(o.Volumes), Ports: append([]api.Port{}, o.Ports...),
		AutoRemove: o.AutoRemove, AutoStart: o.AutoStart, Labels: orEmpty(o.Labels),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		StartedAt: utc(r.StartedAt), StoppedAt: utc(r.StoppedAt), PausedAt: utc(r.PausedAt), TTLSeconds: orNull(o.TTLSeconds), IdleSeconds: orNull(o.IdleSeconds), OnExpiry: cmp.Or(o.OnExpiry, options.ExpiryStop), ExpiresAt: utc(r.ExpiresAt), Error: r.Error,
	}
	b.Seccomp, b.UnenforcedLimits = o.Seccomp, r.UnenforcedLimits
	if len(o.Command) > 0 {
		b.Command, b.Restart, b.HealthCheck = o.Command, cmp.Or(o.Restart, string(api.RestartNo)), o.HealthCheck
		b.StopWithCommand = &o.StopWithCommand
	}
	return b
}

// Metrics measures the box. Errors: BoxNotFound.
func (b *Box) Metrics(ctx context.Context) (api.BoxMetrics, error) {
	rec, err := b.Record(ctx)
	if err != nil {
		return api.BoxMetrics{}, err
	}
	u, err := b.Usage(ctx)
	if err != nil {
		return api.BoxMetrics{}, err
	}
	m := api.BoxMetrics{Commands: u.Commands, ExecErrors: u.ExecErrors, CreateDuration: b.r.createDuration(b.id)}
	if rec.Status.Up() && rec.StartedAt != nil {
		percent := 100 * u.CPU.Seconds() / time.Since(*rec.StartedAt).Seconds()
		m.CPUPercent, m.MemoryBytes = &percent, &u.MemoryBytes
		m.CacheBytes, m.Processes = &u.CacheBytes, &u.Processes
		m.BytesSent, m.BytesReceived = &u.StdinBytes, &u.OutputBytes
	}
	m.DiskBytes = u.DiskBytes
	if u.Disk != nil {
		m.DiskRead, m.DiskWritten = &u.Disk.Read, &u.Disk.Written
	}
	if u.Network != nil {
		m.NetSent, m.NetReceived = &u.Network.Sent, &u.Network.Received
	}
	return m, nil
}

// createDuration returns how many milliseconds the create of a box took, or nil
// if this runtime did not create it.
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

// shown returns the volumes as the documents show them: without the members
// that concern only the server.
func shown(volumes []options.Volume) []api.Volume {
	all := make([]api.Volume, len(volumes))
	for i, v := range volumes {
		all[i] = v.Document()
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
