package record

import (
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/options"
)

// ToWire returns the message with which a host process requests a box from the
// shim.
func ToWire(r core.CreateRequest) wire.Create {
	o := r.Options
	volumes := make([]wire.Volume, len(o.Volumes))
	for i, v := range o.Volumes {
		volumes[i] = wire.Volume(v)
	}
	return wire.Create{ID: r.ID, Image: wire.Image(r.Image), Owned: r.Owned, Box: wire.Box{
		Name: o.Name, Image: o.Image, RootfsPath: o.RootfsPath, RootfsWithin: o.RootfsWithin,
		CPUs: o.CPUs, MemoryMiB: o.MemoryMiB, DiskSizeGB: o.DiskSizeGB,
		WorkingDir: o.WorkingDir, User: o.User, Hostname: o.Hostname, Env: o.Env, Volumes: volumes,
		Network: o.Network, Ports: o.Ports, Labels: o.Labels, AutoRemove: o.AutoRemove, Processes: o.Processes,
		TTLSeconds: o.TTLSeconds, IdleSeconds: o.IdleSeconds, OnExpiry: o.OnExpiry, AutoStart: o.AutoStart, Seccomp: o.Seccomp,
		Command: o.Command, ImageCommand: o.ImageCommand, Restart: o.Restart, StopWithCommand: o.StopWithCommand, HealthCheck: o.HealthCheck,
		AllowUnenforcedLimits: o.AllowUnenforcedLimits,
	}}
}

// FromWire returns the request that a message of [ToWire] stands for.
func FromWire(c wire.Create) core.CreateRequest {
	b := c.Box
	volumes := make([]options.Volume, len(b.Volumes))
	for i, v := range b.Volumes {
		volumes[i] = options.Volume(v)
	}
	return core.CreateRequest{ID: c.ID, Image: core.Image(c.Image), Owned: c.Owned, Options: options.Box{
		Name: b.Name, Image: b.Image, RootfsPath: b.RootfsPath, RootfsWithin: b.RootfsWithin,
		CPUs: b.CPUs, MemoryMiB: b.MemoryMiB, DiskSizeGB: b.DiskSizeGB,
		WorkingDir: b.WorkingDir, User: b.User, Hostname: b.Hostname, Env: b.Env, Volumes: volumes,
		Network: b.Network, Ports: b.Ports, Labels: b.Labels, AutoRemove: b.AutoRemove, Processes: b.Processes,
		TTLSeconds: b.TTLSeconds, IdleSeconds: b.IdleSeconds, OnExpiry: b.OnExpiry, AutoStart: b.AutoStart, Seccomp: b.Seccomp,
		Command: b.Command, ImageCommand: b.ImageCommand, Restart: b.Restart, StopWithCommand: b.StopWithCommand, HealthCheck: b.HealthCheck,
		AllowUnenforcedLimits: b.AllowUnenforcedLimits,
	}}
}
