package httpd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/build"
	"sandbox/core/build/recipe"
	"sandbox/core/build/tree"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
)

// maxContext is the most bytes that the tar of a context may have.
const maxContext = 10 << 30

// buildImage builds an image of the recipe in the tar that is the body.
func (s *Server) buildImage(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	o, err := decodeBuild(query)
	if err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	file, err := s.holdContext(r.Body)
	if err != nil {
		return s.brokenOff(err)
	}
	defer file.Close()
	if o.Context, o.Recipe, err = tree.Read(ctx, file, query.Get("recipe"), recipe.MaxSize); err != nil {
		return s.brokenOff(err)
	}
	defer func() { _ = o.Context.Close() }()
	builder := build.Builder{Runtime: s.Runtime, Images: s.Images}
	if strings.Contains(r.Header.Get("Accept"), eventsType) {
		return s.streamBuild(ctx, w, r, builder, o)
	}
	img, err := builder.Build(ctx, o)
	if err != nil {
		return s.brokenOff(err)
	}
	return writeJSON(w, http.StatusOK, img)
}

// decodeBuild reads the parameters of a build. Errors: InvalidArgument, with fields.
func decodeBuild(query url.Values) (o build.Options, err error) {
	var p document.Problems
	o = build.Options{Name: query.Get("name"), Target: query.Get("target"), Args: map[string]string{}}
	if o.Name != "" {
		err := image.CheckName(o.Name)
		p.When(err != nil, "name", "name", "can't be used: %v", err)
	}
	for _, pair := range query["build_arg"] {
		name, value, ok := strings.Cut(pair, "=")
		p.When(!ok || name == "", "build_arg", "value", "is %.100q and must be NAME=VALUE", pair)
		o.Args[name] = value
	}
	for name, to := range map[string]*bool{"no_cache": &o.NoCache, "no_network": &o.NoNetwork} {
		on, err := flag(query, name)
		p.When(err != nil, name, "type", "must be true or false")
		*to = on
	}
	timeout := 0
	for name, n := range map[string]struct {
		to        *int
		low, high int
	}{
		"timeout_ms": {&timeout, 1, options.MaxTTLSeconds * 1000}, "cpus": {&o.CPUs, 1, 1 << 20}, "memory_mib": {&o.MemoryMiB, options.MinMemoryMiB, 1 << 30},
	} {
		if !query.Has(name) {
			continue
		}
		value, err := strconv.Atoi(query.Get(name))
		p.When(err != nil, name, "type", "must be a whole number")
		if err == nil {
			p.Within(name, value, n.low, n.high)
		}
		*n.to = value
	}
	o.Timeout = time.Duration(timeout) * time.Millisecond
	return o, p.Err(fault.InvalidArgument)
}

// holdContext keeps a body in a file without a name, which the caller closes.
func (s *Server) holdContext(body io.Reader) (*os.File, error) {
	fd, err := unix.Open(s.Held, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fault.Disk(err, "hold the context of a build")
	}
	f := os.NewFile(uintptr(fd), "context")
	n, err := io.Copy(f, io.LimitReader(rawBody{body}, maxContext+1))
	if err == nil && n > maxContext {
		err = fault.New(fault.TooLarge, "the context is larger than the %d bytes allowed: leave files out with %s", int64(maxContext), tree.IgnoreFile)
	}
	if err != nil {
		_ = f.Close()
		return nil, fault.Disk(err, "hold the context of a build")
	}
	return f, nil
}

// streamBuild builds and sends events, the last of which is the image or the failure. A
// client that goes away ends the build.
func (s *Server) streamBuild(ctx context.Context, w http.ResponseWriter, r *request, builder build.Builder, o build.Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &buildEvents{out: beginEvents(w), gone: cancel}
	_ = out.send(nil) // the head, so that the client knows it is connected
	building, ended := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { out.beat(building, s.Heartbeat) })
	o.Report = out
	img, err := builder.Build(ctx, o)
	ended()
	beating.Wait()
	if errors.Is(err, errGone) || out.broken {
		return nil // nobody is left to tell
	}
	last, err := s.lastOfWork(r, api.PullImage, img, s.brokenOff(err))
	if err == nil {
		_ = out.send(last)
	}
	return err
}

// buildEvents sends how a build comes along. Output waits for the client; the progress of
// pulls does not.
type buildEvents struct {
	gone func() // ends the build

	mu     sync.Mutex // of what follows
	out    eventWriter
	news   pullNews
	sent   time.Time
	broken bool // the client has gone
}

// send writes events at once, behind the news of pulls.
func (b *buildEvents) send(text []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errGone
	}
	if text = append(b.news.events(), text...); len(text) > 0 && b.out.write(text) != nil || b.out.flush() != nil {
		b.broken = true
		b.gone()
		return errGone
	}
	b.sent = time.Now()
	return nil
}

// event sends one event.
func (b *buildEvents) event(kind string, v any) error {
	doc, err := encode(v)
	if err != nil {
		return err
	}
	return b.send(appendEvent(nil, kind, doc))
}

// Pull notes the progress of a pull.
func (b *buildEvents) Pull(p api.ImageProgress) { b.news.note(p) }

// Step tells of a step. A client that has gone ends the build.
func (b *buildEvents) Step(s api.BuildStep) { _ = b.event(api.BuildStepEvent, s) }

// Output sends output of a command.
func (b *buildEvents) Output(step int, stderr bool, p []byte) error {
	return b.event(api.BuildOutputEvent, api.NewBuildOutput(step, stderr, p))
}

// beat sends the news of pulls, and a sign of life after each time of quiet, until ctx
// ends.
func (b *buildEvents) beat(ctx context.Context, heartbeat time.Duration) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			b.mu.Lock()
			quiet := now.Sub(b.sent) >= heartbeat
			b.mu.Unlock()
			switch {
			case quiet:
				_ = b.send([]byte(": alive\n\n"))
			case b.news.some():
				_ = b.send(nil)
			}
		}
	}
}
