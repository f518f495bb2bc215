package api

// Info is what a server says of itself (GET /v1/info).
type Info struct {
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	APIVersion string          `json:"api_version"`
	Limits     Limits          `json:"limits"`
	Usage      Usage           `json:"usage"`
	Defaults   Defaults        `json:"defaults"`
	Features   map[string]bool `json:"features"`
}

// Limits are the most that boxes can have, and how many there can be.
type Limits struct {
	MaxCPUs       int `json:"max_cpus"`
	MaxMemoryMiB  int `json:"max_memory_mib"`
	MaxDiskSizeGB int `json:"max_disk_size_gb"`
	MaxBoxes      int `json:"max_boxes"`
}

// Usage is how many boxes a server has, and what those that run may use
// together, as they were promised it.
type Usage struct {
	Boxes     int `json:"boxes"`
	Running   int `json:"running"`
	CPUs      int `json:"cpus"`
	MemoryMiB int `json:"memory_mib"`
}

// Defaults are what a box has that asks for nothing else.
type Defaults struct {
	Image      string `json:"image"`
	CPUs       int    `json:"cpus"`
	MemoryMiB  int    `json:"memory_mib"`
	Network    string `json:"network"`
	AutoRemove bool   `json:"auto_remove"`
}

// Collected is what a garbage collection removed.
type Collected struct {
	Removed        int      `json:"removed"` // boxes
	ReclaimedBytes int64    `json:"reclaimed_bytes"`
	Boxes          []string `json:"boxes"` // ids
}
