package e2b

import (
	"net/http"
	"time"
)

// measured is what is measured of a box at one time.
type measured struct {
	At        time.Time `json:"timestamp"`
	Unix      int64     `json:"timestampUnix"`
	CPUs      int       `json:"cpuCount"`
	CPUUsed   float64   `json:"cpuUsedPct"` // of all CPUs of the box, mean since its start
	MemUsed   int64     `json:"memUsed"`    // bytes
	MemTotal  int64     `json:"memTotal"`
	MemCache  int64     `json:"memCache"`
	DiskUsed  int64     `json:"diskUsed"`
	DiskTotal int64     `json:"diskTotal"`
}

// showMetrics measures a box now. What is not known is 0.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	m, err := s.Runtime.At(rec.ID).Metrics(r.Context())
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	d := measured{
		At: now, Unix: now.Unix(), CPUs: rec.Options.CPUs,
		MemTotal: int64(rec.Options.MemoryMiB) << 20, DiskTotal: int64(rec.Options.DiskSizeGB) << 30,
	}
	if m.CPUPercent != nil {
		d.CPUUsed = *m.CPUPercent / float64(rec.Options.CPUs)
	}
	if m.MemoryBytes != nil {
		d.MemUsed = *m.MemoryBytes
	}
	return writeJSON(w, http.StatusOK, []measured{d})
}
