// Package options holds what a caller can ask for: the options of a box ([Box])
// and of a command in it ([Exec]). There is one reader for each kind of
// document and one list of checks, so that C, REST and the command line refuse
// the same things with the same words. What depends on the host (does a
// directory exist, how many CPUs are there) is checked where it is used.
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
	DefaultProcesses = 4096      // processes and threads; the configuration sets another number
)

// The limits of the contract (section 1). The most CPUs and memory that a box
// may have depend on the host; see core.CheckLimits.
const (
	MinMemoryMiB  = 16
	MaxDiskSizeGB = 65536
	MaxVolumes    = 64
	MaxPorts      = 256
	MaxEnvPairs   = 1000
	MaxEnvBytes   = 128 << 10
	MaxCmdBytes   = 128 << 10
	MaxLabels     = 64
	MaxDocument   = 1 << 20  // the most bytes of a document that this package reads
	MaxCommand    = 16 << 20 // the same, of a document that may hold a command's whole input
)

// Box holds the options of a box. The zero value is not valid: start from
// [Defaults] or from a Decode function. Exactly one of Image and RootfsPath is
// set. The JSON form of a Box is used in records only: the documents of callers
// are read by [Decode] and the other Decode functions, and the messages to the
// shim and to a server have types of their own.
type Box struct {
	Name         string            `json:"name,omitempty"` // "" for none
	Image        string            `json:"image,omitempty"`
	RootfsPath   string            `json:"rootfs_path,omitempty"`   // absolute; used read-only
	RootfsWithin string            `json:"rootfs_within,omitempty"` // directory that RootfsPath must lie in, also after its links are followed; "" for anywhere
	CPUs         int               `json:"cpus"`
	MemoryMiB    int               `json:"memory_mib"`
	DiskSizeGB   int               `json:"disk_size_gb,omitempty"` // in GB of 1024 MiB; 0: no limit of its own
	WorkingDir   string            `json:"working_dir,omitempty"`
	User         string            `json:"user,omitempty"`
	Hostname     string            `json:"hostname,omitempty"` // "" for the name, or the id where that is none
	Env          map[string]string `json:"env,omitempty"`
	Volumes      []Volume          `json:"volumes,omitempty"`
	Network      string            `json:"network"`
	Ports        []Port            `json:"ports,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	AutoRemove   bool              `json:"auto_remove"`
	TTLSeconds   int               `json:"ttl_seconds,omitempty"`  // from the start, the resume or a change; 0: none
	IdleSeconds  int               `json:"idle_seconds,omitempty"` // without use; 0: none
	OnExpiry     string            `json:"on_expiry,omitempty"`    // what becomes of it then; "" for [ExpiryStop]
	AutoStart    bool              `json:"auto_start,omitempty"`   // what needs it to run starts or resumes it
	Seccomp      string            `json:"seccomp,omitempty"`      // which system calls it has: [SeccompStrict], or "" for [SeccompDefault]
	// AllowUnenforcedLimits lets the box run where the host can't enforce its limits.
	AllowUnenforcedLimits bool `json:"allow_unenforced_limits,omitzero"`
	// Command is the main command, which runs whenever the box does; nil for none. With
	// ImageCommand it is the one that the image has of its own: see [Box.Serve].
	Command         []string         `json:"command,omitempty"`
	ImageCommand    bool             `json:"image_command,omitempty"`
	Restart         string           `json:"restart,omitempty"`           // see [ParseRestart]; "" for no
	StopWithCommand bool             `json:"stop_with_command,omitempty"` // the box stops when the command has ended for good
	HealthCheck     *api.HealthCheck `json:"healthcheck,omitempty"`       // of the command; nil for the image's
	Processes       int              `json:"processes,omitempty"`         // the most processes and threads; set by the runtime; 0: DefaultProcesses
}

// The lists of system calls that a box may have.
const (
	SeccompDefault = "default"
	SeccompStrict  = "strict" // what Python, bash and compilers need, and little else
)

// Volume is a directory or file that the box sees: of the host, or in a claim of a
// cluster. It has the members of the contract's document, and one that only the server
// sets. Exactly one of HostPath and Claim is set.
type Volume struct {
	HostPath  string `json:"host_path,omitempty"`
	Claim     string `json:"claim,omitempty"`
	GuestPath string `json:"guest_path"`
	ReadOnly  bool   `json:"read_only"`
	Within    string `json:"within,omitempty"` // as Box.RootfsWithin, for HostPath; no document shows it
}

// Document returns the volume as the contract's documents show it.
func (v Volume) Document() api.Volume {
	return api.Volume{HostPath: v.HostPath, Claim: v.Claim, GuestPath: v.GuestPath, ReadOnly: v.ReadOnly}
}

// Port is a port of the box that the host publishes. It is the contract's
// document, because there are no further options.
type Port = api.Port

// Exec holds the options of a command in a box.
type Exec struct {
	Cmd        []string // argv, argv[0] included
	Env        map[string]string
	WorkingDir string
	User       string
	TTY        bool
	Cols, Rows int           // size of the terminal with TTY; 0 means 80 and 24
	Stdin      bool          // stdin is a pipe (or the terminal) instead of /dev/null
	KeepStdin  bool          // stdin stays open when its holder has gone; see core.Execs.Attach
	Timeout    time.Duration // 0: none
}

// Defaults returns a box with the contract's defaults and no root file system.
func Defaults() Box {
	return Box{CPUs: DefaultCPUs, MemoryMiB: DefaultMemoryMiB, Network: NetworkIsolated, AutoRemove: true}
}
