package client

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
)

// Build says what a server is to build. What is 0 or "" is the server's default.
type Build struct {
	// Recipe is the path of the recipe in the tar of the context; "" for the entry
	// .sandbox-recipe, which is no part of the context.
	Recipe    string
	Name      string // of the image; "" for one that is made of its id
	Target    string // the stage that becomes the image; "" for the last one
	Args      map[string]string
	NoCache   bool
	NoNetwork bool
	Timeout   time.Duration // of the command of each RUN, in whole milliseconds
	CPUs      int
	MemoryMiB int
}

// query returns the parameters of the request.
func (b Build) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"recipe": b.Recipe, "name": b.Name, "target": b.Target} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b.Args)) {
		q.Add("build_arg", key+"="+b.Args[key])
	}
	for name, on := range map[string]bool{"no_cache": b.NoCache, "no_network": b.NoNetwork} {
		if on {
			q.Set(name, "true")
		}
	}
	for name, n := range map[string]int64{"timeout_ms": b.Timeout.Milliseconds(), "cpus": int64(b.CPUs), "memory_mib": int64(b.MemoryMiB)} {
		if n != 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return q
}

// BuildReporter is told how a build comes along, by the calling goroutine. What it
// returns from Output ends the build.
type BuildReporter interface {
	Pull(p api.ImageProgress) // of an image that the recipe stands on
	Step(s api.BuildStep)
	Output(step int, stderr bool, p []byte) error
}

// BuildImage has the server build an image of a recipe. tar is the context, a plain tar.
// Errors: InvalidArgument (what is wrong with the recipe, line by line), FileNotFound (a
// file to be copied), Image (a base image; a command that failed), Timeout (a command that
// took too long), TooLarge, Storage, ResourceExhausted.
func (c *Client) BuildImage(ctx context.Context, b Build, tar io.Reader, r BuildReporter) (api.Image, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the build if the reporter does
	resp, err := c.send(ctx, request{
		method: http.MethodPost, path: "/v1/images:build", query: b.query(), stream: tar,
		header: http.Header{"Accept": {"text/event-stream"}, "Content-Type": {"application/x-tar"}, "Expect": {"100-continue"}},
	})
	if err != nil {
		return api.Image{}, err
	}
	defer resp.Body.Close()
	img, err := c.builds(newSSE(resp.Body), resp.Header, r)
	if err != nil && !fault.Classified(err) {
		err = c.lost(ctx, err)
	}
	return img, err
}

// builds reads the events of a build to the last one.
func (c *Client) builds(events sse, header http.Header, r BuildReporter) (img api.Image, err error) {
	for {
		m, err := events.next()
		if err != nil {
			return img, err
		}
		switch m.kind {
		case api.PullError:
			e := &Error{RequestID: header.Get("X-Request-Id")}
			c.describe(e, m.data, "an event of a build")
			return img, e
		case api.PullImage:
			return img, fault.Wrap(fault.Upstream, json.Unmarshal(m.data, &img), "an image that can't be read")
		}
		if err := reported(m.kind, m.data, r); err != nil {
			return img, err
		}
	}
}

// reported passes an event on. One of an unknown kind is left out.
func reported(kind string, data []byte, r BuildReporter) (err error) {
	switch kind {
	case api.PullProgress:
		var p api.ImageProgress
		if err = json.Unmarshal(data, &p); err == nil {
			r.Pull(p)
		}
	case api.BuildStepEvent:
		var s api.BuildStep
		if err = json.Unmarshal(data, &s); err == nil {
			r.Step(s)
		}
	case api.BuildOutputEvent:
		var o api.BuildOutput
		if err = json.Unmarshal(data, &o); err != nil {
			break
		}
		text, err := o.Bytes()
		if err != nil {
			return fault.Wrap(fault.Upstream, err, "output of a build that can't be read")
		}
		return r.Output(o.Step, o.Stream == api.Stderr, text)
	}
	return fault.Wrap(fault.Upstream, err, "an event of a build that can't be read")
}
