// Package options holds what a caller can ask for: of a box ([Box]) and of a
// command in it ([Exec]). Each has one reader per document and one flat list
// of checks, so that C, REST and the command line refuse the same things with
// the same words. What depends on the host (does the directory exist, how many
// CPUs are there) is checked where it is used.
package options

import (
	"time"

	"sandbox/api"
)

// Networks that a box can have.
const (
	NetworkIsolated = "Isolated" // own network namespace
	NetworkNone     = "None"     // loopback only
)

// Protocols of a published port.
const (
	ProtocolTCP = "Tcp"
	ProtocolUDP = "Udp"
)

// Defaults of the box options document.
const (
	DefaultCPUs      = 2
	DefaultMemoryMiB = 512
	DefaultImage     = "default" // an alias of the image store
)

// Limits of the contract (section 1). MaxCPUs and MaxMemoryMiB are the host's.
const (
	MinMemoryMiB  = 16
	MaxDiskSizeGB = 65536
	MaxVolumes    = 64
	MaxPorts      = 256
	MaxEnvPairs   = 1000
	MaxEnvBytes   = 128 << 10
	MaxCmdBytes   = 128 << 10
	MaxLabels     = 64
	MaxProcesses  = 4096
	MaxDocument   = 1 << 20  // bytes of a document that this package reads
	MaxCommand    = 16 << 20 // of one that may hold a command's whole input
)

// Box says how a box shall be. The zero value is not valid: start from
// [Defaults] or a Decode function. Exactly one of Image and RootfsPath is set.
// Its JSON is that of records alone: documents of callers are read by [Decode]
// and its like, and the messages to the shim and to a server have types of their
// own.
type Box struct {
	Name         string            `json:"name,omitempty"` // "" for none
	Image        string            `json:"image,omitempty"`
	RootfsPath   string            `json:"rootfs_path,omitempty"`   // absolute; used read-only
	RootfsWithin string            `json:"rootfs_within,omitempty"` // directory that RootfsPath must lie in, links and all; "" for anywhere
	CPUs         int               `json:"cpus"`
	MemoryMiB    int               `json:"memory_mib"`
	DiskSizeGB   int               `json:"disk_size_gb,omitempty"` // of 1024 MiB; 0: no limit of its own
	WorkingDir   string            `json:"working_dir,omitempty"`
	User         string            `json:"user,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Volumes      []Volume          `json:"volumes,omitempty"`
	Network      string            `json:"network"`
	Ports        []Port            `json:"ports,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	AutoRemove   bool              `json:"auto_remove"`
}

// Volume is a host directory or file that the box sees: the contract's
// document, and what only the server says of it.
type Volume struct {
	HostPath  string `json:"host_path"`
	GuestPath string `json:"guest_path"`
	ReadOnly  bool   `json:"read_only"`
	Within    string `json:"within,omitempty"` // as Box.RootfsWithin; no document shows it
}

// Document returns the volume as the contract's documents show it.
func (v Volume) Document() api.Volume {
	return api.Volume{HostPath: v.HostPath, GuestPath: v.GuestPath, ReadOnly: v.ReadOnly}
}

// Port is a port of the box that the host publishes. The contract's document
// says all that there is to ask for.
type Port = api.Port

// Exec says how a command shall be run in a box.
type Exec struct {
	Cmd        []string // argv, argv[0] included
	Env        map[string]string
	WorkingDir string
	User       string
	TTY        bool
	Cols, Rows int           // with TTY; 0 means 80 and 24
	Stdin      bool          // a pipe (or the terminal) instead of /dev/null
	KeepStdin  bool          // the pipe outlives the process that holds it: see core.Execs.Attach
	Timeout    time.Duration // 0: none
}

// Defaults returns a box of the contract's defaults, with no root file system.
func Defaults() Box {
	return Box{CPUs: DefaultCPUs, MemoryMiB: DefaultMemoryMiB, Network: NetworkIsolated, AutoRemove: true}
}
