package e2b

import (
	"context"
	"net"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// version is the version of the in-box protocol that SDKs are told. They use by it
// what only later versions have: octet streams as uploads, users by default, the
// entries of watched files.
const version = "0.6.9"

// sandbox is what a client needs to reach a box.
type sandbox struct {
	TemplateID   string `json:"templateID"`
	SandboxID    string `json:"sandboxID"`
	ClientID     string `json:"clientID"`
	Version      string `json:"envdVersion"`
	AccessToken  string `json:"envdAccessToken"`
	TrafficToken string `json:"trafficAccessToken"`
	Domain       string `json:"domain"`
}

// reached returns what a client needs to reach a box.
func (s *Server) reached(r *http.Request, rec core.Record) sandbox {
	return sandbox{
		TemplateID: rec.Options.Image, SandboxID: rec.ID, ClientID: clientID, Version: version,
		AccessToken: s.token("access", rec.ID), TrafficToken: s.token("traffic", rec.ID), Domain: s.domain(r),
	}
}

// domain returns what the client of a request puts behind the number of a port and the
// id of a box to name its host. The domain of ports has the port that the request came
// to, if that is not the one of its scheme: a proxy in front of us has its own.
func (s *Server) domain(r *http.Request) string {
	if s.PortDomain == "" {
		return s.Domain
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return net.JoinHostPort(s.PortDomain, port)
	}
	return s.PortDomain
}

// clientID is what E2B has for the host of a box, of which there is one here.
const clientID = "local"

// described is what is told of a box.
type described struct {
	TemplateID string            `json:"templateID"`
	SandboxID  string            `json:"sandboxID"`
	ClientID   string            `json:"clientID"`
	Version    string            `json:"envdVersion"`
	StartedAt  time.Time         `json:"startedAt"`
	EndAt      time.Time         `json:"endAt"`
	CPUs       int               `json:"cpuCount"`
	MemoryMB   int               `json:"memoryMB"`
	DiskMB     int               `json:"diskSizeMB"`
	State      api.BoxStatus     `json:"state"`
	Metadata   map[string]string `json:"metadata"`
}

// never is the end of a box that has none: E2B's boxes all have one.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// describe returns what is told of a box.
func describe(rec core.Record) described {
	d := described{
		TemplateID: rec.Options.Image, SandboxID: rec.ID, ClientID: clientID, Version: version,
		StartedAt: rec.CreatedAt.UTC(), EndAt: never, State: rec.Status, Metadata: metadata(rec.Options.Labels),
		CPUs: rec.Options.CPUs, MemoryMB: rec.Options.MemoryMiB, DiskMB: rec.Options.DiskSizeGB << 10,
	}
	if rec.StartedAt != nil {
		d.StartedAt = rec.StartedAt.UTC()
	}
	if rec.ExpiresAt != nil {
		d.EndAt = rec.ExpiresAt.UTC()
	}
	return d
}

// detail is what is told of one box that was asked for.
type detail struct {
	described
	AccessToken string    `json:"envdAccessToken"`
	Domain      string    `json:"domain"`
	Internet    bool      `json:"allowInternetAccess"`
	Lifecycle   lifecycle `json:"lifecycle"`
}

type lifecycle struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"`
}

func (s *Server) showBox(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	d := detail{
		described: describe(rec), AccessToken: s.token("access", rec.ID), Domain: s.domain(r),
		Internet: rec.Options.Network != options.NetworkNone, Lifecycle: lifecycle{OnTimeout: "kill", AutoResume: rec.Options.AutoStart},
	}
	if rec.Options.OnExpiry == options.ExpiryPause {
		d.Lifecycle.OnTimeout = "pause"
	}
	return writeJSON(w, http.StatusOK, d)
}

// up returns the box that the path names, if it runs or is paused: E2B knows no
// others. Errors: BoxNotFound.
func (s *Server) up(r *http.Request) (core.Record, error) {
	id := r.PathValue("id")
	rec, err := s.Runtime.Find(r.Context(), id)
	if err == nil && !rec.Status.Up() {
		err = fault.New(fault.BoxNotFound, "sandbox %s is %s: sandbox start %s starts it, for E2B it is gone", rec.ID, rec.Status, rec.ID)
	}
	return rec, err
}

func (s *Server) removeBox(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.Runtime.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.Runtime.Remove(r.Context(), rec.ID, true); err != nil {
		return err
	}
	s.Spool.Remove(rec.ID)
	s.accounts.forget(rec.ID)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// connectBox resumes a box that is paused, and gives it at least the time that the
// client asks for.
func (s *Server) connectBox(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Timeout *int  `json:"timeout"`
		Memory  *bool `json:"memory"`
	}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	if asked.Memory != nil && !*asked.Memory {
		return absence("a box is resumed as it was paused: sandbox restart begins its processes anew")
	}
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if rec.Status == api.Paused {
		if rec, err = s.resume(r.Context(), rec.ID); err != nil {
			return err
		}
		status = http.StatusCreated
	}
	if asked.Timeout != nil {
		if err := s.extend(r.Context(), rec.ID, *asked.Timeout); err != nil {
			return err
		}
	}
	return writeJSON(w, status, s.reached(r, rec))
}

// resume resumes a box, unless somebody else did so just now.
func (s *Server) resume(ctx context.Context, id string) (core.Record, error) {
	rec, err := s.Runtime.At(id).Resume(ctx)
	if fault.Is(err, fault.InvalidState) {
		if now, found := s.Runtime.Find(ctx, id); found == nil && now.Status == api.Running {
			return now, nil
		}
	}
	return rec, err
}

// resumeBox is what SDKs had before connectBox.
func (s *Server) resumeBox(w http.ResponseWriter, r *http.Request) error {
	asked := struct {
		Timeout   int   `json:"timeout"`
		AutoPause *bool `json:"autoPause"`
	}{Timeout: defaultTimeout}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	box := s.Runtime.At(rec.ID)
	if rec, err = box.Resume(r.Context()); err != nil {
		return err
	}
	u := options.Update{TTLSeconds: &asked.Timeout}
	if asked.AutoPause != nil {
		u.OnExpiry = expiry(*asked.AutoPause)
	}
	if err := s.update(r.Context(), rec.ID, u); err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, s.reached(r, rec))
}

func (s *Server) pauseBox(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Memory *bool `json:"memory"`
	}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	if asked.Memory != nil && !*asked.Memory {
		return absence("a pause keeps the memory where it is; sandbox stop ends the processes and keeps the files")
	}
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	if _, err := s.Runtime.At(rec.ID).Pause(r.Context(), false); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
