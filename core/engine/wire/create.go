package wire

import "sandbox/api"

// Create asks the shim for a box. Its image is resolved already.
type Create struct {
	ID    string `json:"id"`
	Box   Box    `json:"options"`
	Image Image  `json:"image"`           // of a box with RootfsPath, Layers alone
	Owned bool   `json:"owned,omitempty"` // the box ends with the process that asks
}

// Box is what a Create asks for; options.Box explains the members.
type Box struct {
	Name         string            `json:"name,omitempty"`
	Image        string            `json:"image,omitempty"`
	RootfsPath   string            `json:"rootfs_path,omitempty"`
	RootfsWithin string            `json:"rootfs_within,omitempty"`
	CPUs         int               `json:"cpus"`
	MemoryMiB    int               `json:"memory_mib"`
	DiskSizeGB   int               `json:"disk_size_gb,omitempty"`
	WorkingDir   string            `json:"working_dir,omitempty"`
	User         string            `json:"user,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Volumes      []Volume          `json:"volumes,omitempty"`
	Network      string            `json:"network"`
	Ports        []api.Port        `json:"ports,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	AutoRemove   bool              `json:"auto_remove"`
}

// Volume is a volume of a Box, and the directory that its host path must lie in.
type Volume struct {
	HostPath  string `json:"host_path"`
	GuestPath string `json:"guest_path"`
	ReadOnly  bool   `json:"read_only"`
	Within    string `json:"within,omitempty"`
}

// Image is the image of a Create; core.Image explains the members.
type Image struct {
	Ref        string   `json:"ref,omitempty"`
	ID         string   `json:"id,omitempty"`
	Layers     []string `json:"layers"`
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	User       string   `json:"user,omitempty"`
}
