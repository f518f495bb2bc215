package core

import (
	"time"

	"sandbox/core/options"
)

// Info is a box as callers see it, in JSON and elsewhere: null where nothing
// is set.
type Info struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Status     State             `json:"status"` // same as State.Status
	State      StateInfo         `json:"state"`
	Image      string            `json:"image"`
	RootfsPath string            `json:"rootfs_path"`
	CPUs       int               `json:"cpus"`
	MemoryMiB  int               `json:"memory_mib"`
	DiskSizeGB *int              `json:"disk_size_gb"`
	Network    string            `json:"network"`
	WorkingDir string            `json:"working_dir"`
	Env        map[string]string `json:"env,omitempty"` // only of one box, not in lists
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

// StateInfo is the state of a box in an [Info].
type StateInfo struct {
	Status  State  `json:"status"`
	Running bool   `json:"running"`
	PID     int    `json:"pid"`
	Reason  string `json:"reason,omitempty"`
}

// Info gives the box without its environment, which may hold secrets.
func (r Record) Info() Info {
	o := r.Options
	i := Info{
		ID: r.ID, Name: o.Name, Status: r.State,
		State: StateInfo{Status: r.State, Running: r.State == Running, PID: r.PID, Reason: r.Reason},
		Image: o.Image, RootfsPath: o.RootfsPath, CPUs: o.CPUs, MemoryMiB: o.MemoryMiB,
		Network: o.Network, WorkingDir: o.WorkingDir, AutoRemove: o.AutoRemove,
		Volumes: append([]options.Volume{}, o.Volumes...), Ports: append([]options.Port{}, o.Ports...),
		Labels:    map[string]string{},
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, StartedAt: r.StartedAt, StoppedAt: r.StoppedAt, Error: r.Error,
	}
	if o.Labels != nil {
		i.Labels = o.Labels
	}
	if o.DiskSizeGB != 0 {
		i.DiskSizeGB = &o.DiskSizeGB
	}
	return i
}

// InfoWithEnv gives the box with its environment.
func (r Record) InfoWithEnv() Info {
	i := r.Info()
	i.Env = r.Options.Env
	return i
}
