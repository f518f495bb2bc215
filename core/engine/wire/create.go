package wire

import "sandbox/api"

// Create requests a new box from the shim. Its image is resolved already.
type Create struct {
	ID    string `json:"id"`
	Box   Box    `json:"options"`
	Image Image  `json:"image"`           // has only Layers for a box with RootfsPath
	Owned bool   `json:"owned,omitempty"` // the box ends with the requesting process
	Pool  int    `json:"pool,omitempty"`  // how many spares the shim keeps from now on
}

// Box holds the options of a Create. The fields of options.Box explain them.
type Box struct {
	Name            string            `json:"name,omitempty"`
	Image           string            `json:"image,omitempty"`
	RootfsPath      string            `json:"rootfs_path,omitempty"`
	RootfsWithin    string            `json:"rootfs_within,omitempty"`
	CPUs            int               `json:"cpus"`
	MemoryMiB       int               `json:"memory_mib"`
	DiskSizeGB      int               `json:"disk_size_gb,omitempty"`
	WorkingDir      string            `json:"working_dir,omitempty"`
	User            string            `json:"user,omitempty"`
	Hostname        string            `json:"hostname,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	Volumes         []Volume          `json:"volumes,omitempty"`
	Network         string            `json:"network"`
	Ports           []api.Port        `json:"ports,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	AutoRemove      bool              `json:"auto_remove"`
	TTLSeconds      int               `json:"ttl_seconds,omitempty"`
	IdleSeconds     int               `json:"idle_seconds,omitempty"`
	OnExpiry        string            `json:"on_expiry,omitempty"`
	AutoStart       bool              `json:"auto_start,omitempty"`
	Seccomp         string            `json:"seccomp,omitempty"`
	Command         []string          `json:"command,omitempty"`
	ImageCommand    bool              `json:"image_command,omitempty"`
	Restart         string            `json:"restart,omitempty"`
	StopWithCommand bool              `json:"stop_with_command,omitempty"`
	HealthCheck     *api.HealthCheck  `json:"healthcheck,omitempty"`
	Processes       int               `json:"processes,omitempty"`

	AllowUnenforcedLimits bool `json:"allow_unenforced_limits,omitempty"`
}

// Volume is a volume of a Box. Within is the directory that its host path must
// lie in.
type Volume struct {
	HostPath  string `json:"host_path,omitempty"`
	Claim     string `json:"claim,omitempty"` // of a cluster: no box of a shim has one
	GuestPath string `json:"guest_path"`
	ReadOnly  bool   `json:"read_only"`
	Within    string `json:"within,omitempty"`
}

// Image is the image of a Create. The fields of core.Image explain its own.
type Image struct {
	Ref        string   `json:"ref,omitempty"`
	ID         string   `json:"id,omitempty"`
	Layers     []string `json:"layers"`
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	User       string   `json:"user,omitempty"`

	Command     []string         `json:"command,omitempty"`
	HealthCheck *api.HealthCheck `json:"healthcheck,omitempty"`
	StopSignal  string           `json:"stop_signal,omitempty"`
}
