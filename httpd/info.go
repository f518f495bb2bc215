package httpd

import (
	"net/http"
	"runtime"

	"sandbox/core"
	"sandbox/core/options"
)

// serverInfo is the reply to GET /v1/info.
type serverInfo struct {
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	APIVersion string          `json:"api_version"`
	Limits     limits          `json:"limits"`
	Usage      usage           `json:"usage"`
	Defaults   defaults        `json:"defaults"`
	Features   map[string]bool `json:"features"`
}

type limits struct {
	MaxCPUs       int `json:"max_cpus"`
	MaxMemoryMiB  int `json:"max_memory_mib"`
	MaxDiskSizeGB int `json:"max_disk_size_gb"`
	MaxBoxes      int `json:"max_boxes"`
}

// usage is the sum of what the running boxes were promised, not of what they use.
type usage struct {
	Boxes     int `json:"boxes"`
	Running   int `json:"running"`
	CPUs      int `json:"cpus"`
	MemoryMiB int `json:"memory_mib"`
}

type defaults struct {
	Image      string `json:"image"`
	CPUs       int    `json:"cpus"`
	MemoryMiB  int    `json:"memory_mib"`
	Network    string `json:"network"`
	AutoRemove bool   `json:"auto_remove"`
}

func (s *Server) info(w http.ResponseWriter, r *request) error {
	recs, err := s.Runtime.List(r.Context())
	if err != nil {
		return err
	}
	memory, err := core.HostMemoryMiB()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, serverInfo{
		Name: "sandbox", Version: core.Version, APIVersion: "v1",
		Limits: limits{
			MaxCPUs: runtime.NumCPU(), MaxMemoryMiB: memory,
			MaxDiskSizeGB: options.MaxDiskSizeGB, MaxBoxes: core.MaxBoxes,
		},
		Usage: used(recs),
		Defaults: defaults{
			Image: options.DefaultImage, CPUs: options.DefaultCPUs, MemoryMiB: options.DefaultMemoryMiB,
			Network: options.NetworkIsolated,
		},
		Features: map[string]bool{"hosted": s.Hosted, "path_prefix": s.Prefix != "", "host_paths": len(s.HostRoots) > 0 || r.by == ByFile},
	})
}

func used(recs []core.Record) usage {
	u := usage{Boxes: len(recs)}
	for _, rec := range recs {
		if rec.State == core.Running {
			u.Running++
			u.CPUs += rec.Options.CPUs
			u.MemoryMiB += rec.Options.MemoryMiB
		}
	}
	return u
}
