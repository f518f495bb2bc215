package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Filter says which boxes a listing contains. A member that is empty excludes
// none.
type Filter struct {
	Status api.BoxStatus // Running or Stopped
	Name   string
	Label  string // KEY=VALUE
}

// createBody is the document that asks for a box. It holds all that a client
// may decide. The server decides in which directories a host path must lie.
type createBody struct {
	Name        string            `json:"name,omitempty"`
	Image       string            `json:"image,omitempty"`
	RootfsPath  string            `json:"rootfs_path,omitempty"`
	CPUs        int               `json:"cpus"`
	MemoryMiB   int               `json:"memory_mib"`
	DiskSizeGB  int               `json:"disk_size_gb,omitempty"`
	WorkingDir  string            `json:"working_dir,omitempty"`
	User        string            `json:"user,omitempty"`
	Hostname    string            `json:"hostname,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Volumes     []api.Volume      `json:"volumes,omitempty"`
	Network     string            `json:"network"`
	Ports       []api.Port        `json:"ports,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	AutoRemove  bool              `json:"auto_remove"`
	TTLSeconds  int               `json:"ttl_seconds,omitempty"`
	IdleSeconds int               `json:"idle_seconds,omitempty"`
	OnExpiry    string            `json:"on_expiry,omitempty"`
	AutoStart   bool              `json:"auto_start,omitempty"`
	Seccomp     string            `json:"seccomp,omitempty"`

	AllowUnenforcedLimits bool `json:"allow_unenforced_limits,omitzero"`

	Command         any              `json:"command,omitempty"` // a list of strings, or "image"
	Restart         string           `json:"restart,omitempty"`
	StopWithCommand bool             `json:"stop_with_command,omitempty"`
	HealthCheck     *api.HealthCheck `json:"healthcheck,omitempty"`
}

func newCreateBody(o options.Box) createBody {
	volumes := make([]api.Volume, len(o.Volumes))
	for i, v := range o.Volumes {
		volumes[i] = v.Document()
	}
	b := createBody{
		Name: o.Name, Image: o.Image, RootfsPath: o.RootfsPath,
		CPUs: o.CPUs, MemoryMiB: o.MemoryMiB, DiskSizeGB: o.DiskSizeGB,
		WorkingDir: o.WorkingDir, User: o.User, Hostname: o.Hostname, Env: o.Env, Volumes: volumes,
		Network: o.Network, Ports: o.Ports, Labels: o.Labels, AutoRemove: o.AutoRemove,
		TTLSeconds: o.TTLSeconds, IdleSeconds: o.IdleSeconds, OnExpiry: o.OnExpiry, AutoStart: o.AutoStart, Seccomp: o.Seccomp,
		AllowUnenforcedLimits: o.AllowUnenforcedLimits,
		Restart:               o.Restart, StopWithCommand: o.StopWithCommand, HealthCheck: o.HealthCheck,
	}
	switch {
	case o.ImageCommand:
		b.Command = "image"
	case len(o.Command) > 0:
		b.Command = o.Command
	}
	return b
}

// CreateBox makes a box and starts it. It makes one box only, even if the request
// had to be sent again. Errors: Image, InvalidArgument, AlreadyExists and
// others of the service.
func (c *Client) CreateBox(ctx context.Context, o options.Box) (api.Box, error) {
	var b api.Box
	err := c.call(ctx, request{
		method: http.MethodPost, path: c.boxes, body: newCreateBody(o), again: true,
		header: http.Header{"Idempotency-Key": {rand.Text()}},
	}, &b)
	return b, err
}

// Boxes returns the boxes that match the filter, newest first, without their
// environment.
func (c *Client) Boxes(ctx context.Context, f Filter) ([]api.Box, error) {
	query := url.Values{"page_size": {strconv.Itoa(pageSize)}}
	for name, value := range map[string]string{"status": string(f.Status), "name": f.Name, "label": f.Label} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return pages(ctx, c, c.boxes, query, "boxes", func(b api.Box) string { return b.ID })
}

// Box returns a box by its id, its name, or a unique beginning of its id.
// Errors: BoxNotFound, Ambiguous.
func (c *Client) Box(ctx context.Context, ref string) (api.Box, error) {
	return c.box(ctx, request{method: http.MethodGet, again: true}, ref, "")
}

// BoxMetrics measures a box. Errors: BoxNotFound, Ambiguous.
func (c *Client) BoxMetrics(ctx context.Context, ref string) (m api.BoxMetrics, err error) {
	r := request{method: http.MethodGet, again: true}
	if r.path, err = c.boxPath(ref, "", "metrics"); err == nil {
		err = c.call(ctx, r, &m)
	}
	return m, err
}

// Series says which part of what a box used over time is wanted. What is zero is chosen
// by the server: the last hour, until now, and a step as short as it can be.
type Series struct {
	From, To time.Time
	Step     time.Duration // whole seconds
}

// BoxSeries returns what a box used over time, as the server has measured it. Errors:
// BoxNotFound, Ambiguous, InvalidArgument (From is not before To, or Step too short for
// so long a time), Unavailable (the server keeps nothing, or its log engine is down).
func (c *Client) BoxSeries(ctx context.Context, ref string, s Series) (b api.BoxSeries, err error) {
	r := request{method: http.MethodGet, again: true, query: url.Values{}}
	if s == (Series{}) {
		r.query.Set("from", "1h") // one member at least asks for a series
	}
	if !s.From.IsZero() {
		r.query.Set("from", s.From.Format(time.RFC3339Nano))
	}
	if !s.To.IsZero() {
		r.query.Set("to", s.To.Format(time.RFC3339Nano))
	}
	if s.Step != 0 {
		r.query.Set("step", s.Step.String())
	}
	if r.path, err = c.boxPath(ref, "", "metrics"); err == nil {
		err = c.call(ctx, r, &b)
	}
	return b, err
}

// StartBox starts a stopped box. Errors: BoxNotFound, InvalidState.
func (c *Client) StartBox(ctx context.Context, ref string) (api.Box, error) {
	return c.box(ctx, request{method: http.MethodPost}, ref, ":start")
}

// PauseBox has all processes of a box stand still, and the clocks of its execs. With
// reclaim, the kernel takes back what it can of the box's memory. Errors: BoxNotFound,
// InvalidState, Timeout (a process could not be stopped), Unsupported (reclaim).
func (c *Client) PauseBox(ctx context.Context, ref string, reclaim bool) (api.Box, error) {
	r := request{method: http.MethodPost}
	if reclaim {
		r.body = map[string]bool{"reclaim": true}
	}
	return c.box(ctx, r, ref, ":pause")
}

// ResumeBox lets the processes of a paused box go on. Errors: BoxNotFound,
// InvalidState.
func (c *Client) ResumeBox(ctx context.Context, ref string) (api.Box, error) {
	return c.box(ctx, request{method: http.MethodPost}, ref, ":resume")
}

// UpdateBox changes options of a box. A time that it is given begins now. Errors:
// BoxNotFound, InvalidArgument.
func (c *Client) UpdateBox(ctx context.Context, ref string, u options.Update) (api.Box, error) {
	body := map[string]any{}
	for name, seconds := range map[string]*int{"ttl_seconds": u.TTLSeconds, "idle_seconds": u.IdleSeconds} {
		if seconds != nil && *seconds == 0 {
			body[name] = nil
		} else if seconds != nil {
			body[name] = *seconds
		}
	}
	if u.OnExpiry != nil {
		body["on_expiry"] = u.OnExpiry
	}
	if u.AutoStart != nil {
		body["auto_start"] = u.AutoStart
	}
	return c.box(ctx, request{method: http.MethodPatch, body: body}, ref, "")
}

// StopBox stops a box: its processes get SIGTERM, and SIGKILL after grace,
// which is rounded up to seconds. Its disk is kept. If the box has auto_remove
// it is removed, and StopBox returns its last record. Errors: BoxNotFound, InvalidState.
func (c *Client) StopBox(ctx context.Context, ref string, grace time.Duration) (api.Box, error) {
	query := url.Values{"timeout_seconds": {strconv.FormatInt(int64((grace+time.Second-1)/time.Second), 10)}}
	return c.box(ctx, request{method: http.MethodPost, query: query}, ref, ":stop")
}

// RemoveBox removes a box; a running one only with force. It returns the box's id, or
// ref if the request had to be sent again. Errors: BoxNotFound, InvalidState.
func (c *Client) RemoveBox(ctx context.Context, ref string, force bool) (string, error) {
	path, err := c.boxPath(ref, "")
	if err != nil {
		return "", err
	}
	r := request{method: http.MethodDelete, path: path, again: true}
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	removed := struct {
		ID string `json:"id"`
	}{ref}
	err = c.call(ctx, r, &removed)
	return removed.ID, err
}

// box sends a request about a box that is answered with the box.
func (c *Client) box(ctx context.Context, r request, ref, verb string) (b api.Box, err error) {
	if r.path, err = c.boxPath(ref, verb); err == nil {
		err = c.call(ctx, r, &b)
	}
	return b, err
}

// boxPath returns the path of a box. It refuses "", "." and ".." as BoxNotFound:
// as a segment of a path they would lead elsewhere.
func (c *Client) boxPath(ref, verb string, more ...string) (string, error) {
	if ref == "" || ref == "." || ref == ".." {
		return "", fault.New(fault.BoxNotFound, "no box %q", ref)
	}
	path := c.boxes + "/" + escape(ref) + verb
	if len(more) > 0 {
		path += "/" + escape(more...)
	}
	return path, nil
}
