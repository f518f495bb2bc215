package api

import "time"

// BoxStatus is where a box is in its life: created -> running <-> stopped, or
// running <-> paused, or failed.
type BoxStatus string

// What the status of a box can be.
const (
	Created BoxStatus = "created"
	Running BoxStatus = "running"
	Paused  BoxStatus = "paused"
	Stopped BoxStatus = "stopped"
	Failed  BoxStatus = "failed"
)

// Up reports whether a box has processes: those of a paused one stand still.
func (s BoxStatus) Up() bool { return s == Running || s == Paused }

// Box is a box (contract, section 2).
type Box struct {
	ID          string            `json:"id"`
	Name        *string           `json:"name"`
	Status      BoxStatus         `json:"status"`
	State       BoxState          `json:"state"`
	Image       *string           `json:"image"`
	RootfsPath  *string           `json:"rootfs_path"`
	CPUs        int               `json:"cpus"`
	MemoryMiB   int               `json:"memory_mib"`
	DiskSizeGB  *int              `json:"disk_size_gb"`
	Network     string            `json:"network"`
	WorkingDir  *string           `json:"working_dir"`
	Env         map[string]string `json:"env,omitzero"` // nil in listings
	Volumes     []Volume          `json:"volumes"`
	Ports       []Port            `json:"ports"`
	AutoRemove  bool              `json:"auto_remove"`
	AutoStart   bool              `json:"auto_start"` // what needs it to run starts or resumes it
	Labels      map[string]string `json:"labels"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	StartedAt   *time.Time        `json:"started_at"`
	StoppedAt   *time.Time        `json:"stopped_at"`
	PausedAt    *time.Time        `json:"paused_at"` // nil unless it is paused
	TTLSeconds  *int              `json:"ttl_seconds"`
	IdleSeconds *int              `json:"idle_seconds"`
	OnExpiry    string            `json:"on_expiry"`         // stop, pause or remove
	ExpiresAt   *time.Time        `json:"expires_at"`        // nil unless it is up and has a ttl
	Seccomp     string            `json:"seccomp,omitempty"` // strict where it has the smaller list of system calls
	// UnenforcedLimits is true where the host enforces no limit of the box.
	UnenforcedLimits bool `json:"unenforced_limits,omitzero"`
	// Command is the main command, and what follows belongs to it: a box without one has
	// none of these members.
	Command         []string     `json:"command,omitempty"`
	Restart         string       `json:"restart,omitempty"`           // a [Restart]
	StopWithCommand *bool        `json:"stop_with_command,omitempty"` // the box stops when the command has ended for good
	HealthCheck     *HealthCheck `json:"healthcheck,omitempty"`
	Error           *Failure     `json:"error"`
}

// BoxState is the member "state" of a [Box]: its status once more, and what
// goes with it.
type BoxState struct {
	Status  BoxStatus `json:"status"`
	Running bool      `json:"running"`
	PID     *int      `json:"pid"`              // of its init, on the host, also while it is paused
	Reason  string    `json:"reason,omitempty"` // why it is stopped, paused or failed
	// Command is how the main command is doing, or has ended; nil for a box without one,
	// or that has not been started since it was made.
	Command *CommandState `json:"command,omitempty"`
	Health  *HealthState  `json:"health,omitempty"` // nil unless the command runs and has a check
}

// Volume is a directory or file that the box sees, of the host or in a claim of a cluster.
// It has either host_path or claim.
type Volume struct {
	HostPath  string `json:"host_path,omitempty"` // of the host, or of the nodes of a cluster
	Claim     string `json:"claim,omitempty"`     // the name of a PersistentVolumeClaim
	GuestPath string `json:"guest_path"`
	ReadOnly  bool   `json:"read_only"`
}

// Port is a port of the box that the host publishes.
type Port struct {
	HostIP    string `json:"host_ip,omitempty"`
	HostPort  int    `json:"host_port"` // 0: a free one is chosen
	GuestPort int    `json:"guest_port"`
	Protocol  string `json:"protocol"` // Tcp or Udp
}

// BoxMetrics is what is measured of a box. What is unknown is nil.
type BoxMetrics struct {
	CPUPercent     *float64 `json:"cpu_percent"` // mean since the start; 100 is one CPU
	MemoryBytes    *int64   `json:"memory_bytes"`
	Commands       int64    `json:"commands_executed_total"`
	ExecErrors     int64    `json:"exec_errors_total"`
	BytesSent      *int64   `json:"bytes_sent_total"`     // to the stdin of execs, since the start
	BytesReceived  *int64   `json:"bytes_received_total"` // of the output of execs, since the start
	CreateDuration *int64   `json:"total_create_duration_ms"`
	NetSent        *int64   `json:"network_bytes_sent"` // since the start, headers included
	NetReceived    *int64   `json:"network_bytes_received"`
	CacheBytes     *int64   `json:"memory_cache_bytes"` // of memory_bytes, what files take up that are kept in memory
	Processes      *int64   `json:"processes"`          // processes and threads of its commands
	DiskBytes      *int64   `json:"disk_bytes"`         // that its own disk takes up on the host; nil for a box without one
	DiskRead       *int64   `json:"disk_bytes_read"`    // from devices, since the start; nil where only cgroup v1 counts
	DiskWritten    *int64   `json:"disk_bytes_written"`
}

// BoxSeries is what a box used over time (GET /v1/boxes/{id}/metrics with from, to or
// step).
type BoxSeries struct {
	BoxID       string     `json:"box_id"`
	From        time.Time  `json:"from"` // where the first step begins
	To          time.Time  `json:"to"`
	StepSeconds int64      `json:"step_seconds"`
	Points      []BoxPoint `json:"points"` // oldest first, at most one a step
}

// BoxPoint is what a box used in one step. Of what goes up and down it has the largest
// value; counts are since the start of the box. What is unknown is nil.
type BoxPoint struct {
	At          time.Time `json:"at"`          // of the last measurement in the step
	CPUPercent  float64   `json:"cpu_percent"` // mean since the point before; 100 is one CPU
	MemoryBytes int64     `json:"memory_bytes"`
	CacheBytes  int64     `json:"memory_cache_bytes"` // see BoxMetrics
	Processes   int64     `json:"processes"`
	DiskBytes   *int64    `json:"disk_bytes"`
	DiskRead    *int64    `json:"disk_bytes_read"`
	DiskWritten *int64    `json:"disk_bytes_written"`
	NetSent     *int64    `json:"network_bytes_sent"`
	NetReceived *int64    `json:"network_bytes_received"`
}

// RuntimeMetrics is what a runtime has counted since it was made.
type RuntimeMetrics struct {
	BoxesCreated int64 `json:"boxes_created_total"`
	BoxesFailed  int64 `json:"boxes_failed_total"`
	Running      int64 `json:"num_running_boxes"` // of the whole home
	Commands     int64 `json:"total_commands_executed"`
	ExecErrors   int64 `json:"total_exec_errors"`
}

// Uploaded is what an upload made.
type Uploaded struct {
	Dest string `json:"dest"` // absolute path of the file, or of the directory
	Size int64  `json:"size"` // bytes of the file, or of the tar's files together
}

// BoxIDs returns the ids of boxes. err is passed on.
func BoxIDs(boxes []Box, err error) ([]string, error) {
	ids := make([]string, len(boxes))
	for i, b := range boxes {
		ids[i] = b.ID
	}
	return ids, err
}
