package httpd

import (
	"net/http"
	"runtime"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
)

func (s *Server) info(w http.ResponseWriter, r *request) error {
	recs, err := s.Runtime.List(r.Context())
	if err != nil {
		return err
	}
	memory, err := core.HostMemoryMiB()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.Info{
		Name: "sandbox", Version: core.Version, APIVersion: "v1",
		Limits: api.Limits{
			MaxCPUs: runtime.NumCPU(), MaxMemoryMiB: memory,
			MaxDiskSizeGB: options.MaxDiskSizeGB, MaxBoxes: core.MaxBoxes,
		},
		Usage: used(recs),
		Defaults: api.Defaults{
			Image: options.DefaultImage, CPUs: options.DefaultCPUs, MemoryMiB: options.DefaultMemoryMiB,
			Network: options.NetworkIsolated,
		},
		Features: map[string]bool{"hosted": s.Hosted, "path_prefix": s.Prefix != "", "host_paths": len(s.HostRoots) > 0 || r.by == ByFile && !s.Runtime.Elsewhere()},
	})
}

func used(recs []core.Record) api.Usage {
	u := api.Usage{Boxes: len(recs)}
	for _, rec := range recs {
		if rec.Status == api.Running {
			u.Running++
			u.CPUs += rec.Options.CPUs
			u.MemoryMiB += rec.Options.MemoryMiB
		}
	}
	return u
}
