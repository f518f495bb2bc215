// Package fake is an engine for tests that need neither root nor the programs:
// its boxes are entries of a map, and their commands are plain processes of the
// host. The suite in package enginetest runs on this engine and on the real
// one, so that both behave alike.
package fake

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Engine is a [core.Engine] in memory. It is safe for concurrent use.
type Engine struct {
	mu    sync.Mutex
	boxes map[string]*box
	order []string // ids, oldest first
	ends  core.Expiries
}

var _ core.Engine = (*Engine)(nil)

type box struct {
	record core.Record
	image  core.Image
	execs  []*control // since the last start
	usage  core.Usage
	used   time.Time // the last use, as far as it was looked at
	looks  int       // counts the changes of how long it may be unused
}

// NewEngine returns an engine. When the test ends, its boxes are removed and
// their commands are ended.
func NewEngine(t testing.TB) *Engine {
	e := New()
	t.Cleanup(e.Clear)
	return e
}

// New returns an engine for an example, which has no test to end with. The
// caller must call Clear.
func New() *Engine { return &Engine{boxes: map[string]*box{}} }

// Clear removes all boxes and ends their commands.
func (e *Engine) Clear() {
	for _, id := range slices.Clone(e.order) {
		_ = e.Remove(context.Background(), id, true)
	}
}

// Create makes a box. It accepts any directory as a root file system.
func (e *Engine) Create(_ context.Context, req core.CreateRequest) (core.Record, error) {
	for _, dir := range req.Image.Layers {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return core.Record{}, fault.New(fault.InvalidArgument, "rootfs %q is not a directory", dir)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.boxes[req.ID]; b != nil {
		return b.record, nil
	}
	for _, b := range e.boxes {
		if req.Options.Name != "" && b.record.Options.Name == req.Options.Name {
			return core.Record{}, fault.New(fault.AlreadyExists, "a box %q exists", req.Options.Name)
		}
	}
	now := time.Now().UTC()
	b := &box{image: req.Image, record: core.Record{
		ID: req.ID, Options: req.Options, ImageID: req.Image.ID, Status: api.Running, PID: os.Getpid(),
		CreatedAt: now, UpdatedAt: now, StartedAt: &now,
	}}
	e.setTime(b)
	e.setIdle(b)
	if err := b.serve(); err != nil {
		return core.Record{}, err
	}
	e.boxes[req.ID] = b
	e.order = append(e.order, req.ID)
	return b.record, nil
}

// Brief is an engine whose boxes are gone as soon as they are made, like a box
// with auto_remove whose init dies at once.
type Brief struct{ *Engine }

// Create makes a box, removes it, and returns the record of the box while it
// was running.
func (e Brief) Create(ctx context.Context, req core.CreateRequest) (core.Record, error) {
	rec, err := e.Engine.Create(ctx, req)
	if err != nil {
		return core.Record{}, err
	}
	return rec, e.Remove(ctx, rec.ID, true)
}

// Start starts a stopped box.
func (e *Engine) Start(_ context.Context, id string) (core.Record, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.in(id, api.Stopped)
	if err != nil {
		return core.Record{}, err
	}
	now := time.Now().UTC()
	r := &b.record
	r.Status, r.PID, r.StartedAt, r.StoppedAt, r.UpdatedAt = api.Running, os.Getpid(), &now, nil, now
	b.usage, r.Reason = core.Usage{}, ""
	e.setTime(b)
	e.setIdle(b)
	return b.record, b.serve()
}

// serve starts the main command of the box, if it has one. This engine does not look after
// it: it is not started again, and has no health.
func (b *box) serve() error {
	if len(b.record.Options.Command) == 0 {
		return nil
	}
	c, err := start(b, options.Exec{Cmd: b.record.Options.Command})
	if err != nil {
		return fault.Wrap(fault.Engine, err, "start the main command")
	}
	c.record.Main = true
	b.execs = append(b.execs, c)
	b.record.Command = &api.CommandState{Status: api.CommandRunning, ExecID: c.record.ID}
	return nil
}

// Stop ends the commands of a running or a paused box.
func (e *Engine) Stop(_ context.Context, id string, grace time.Duration) (core.Record, error) {
	return e.stop(id, grace, "")
}

// stop stops a box for a reason, which is told as soon as it reads stopped.
func (e *Engine) stop(id string, grace time.Duration, reason string) (core.Record, error) {
	e.mu.Lock()
	b, err := e.up(id)
	if err != nil {
		e.mu.Unlock()
		return core.Record{}, err
	}
	execs := b.stopped()
	b.record.Reason = reason
	record := b.record
	if record.Options.AutoRemove {
		e.forget(id)
	}
	e.mu.Unlock()
	endAll(execs, grace)
	return record, nil
}

// stopped marks the box as stopped and returns its execs, which the caller must
// end.
func (b *box) stopped() []*control {
	now := time.Now().UTC()
	r := &b.record
	r.Status, r.PID, r.StoppedAt, r.PausedAt, r.ExpiresAt, r.UpdatedAt = api.Stopped, 0, &now, nil, nil, now
	if r.Command != nil {
		r.Command = &api.CommandState{Status: api.CommandEnded, ExecID: r.Command.ExecID}
	}
	execs := b.execs
	b.execs = nil
	return execs
}

// Remove removes a box.
func (e *Engine) Remove(_ context.Context, id string, force bool) error {
	e.mu.Lock()
	b, err := e.in(id, "")
	if err == nil && b.record.Status.Up() && !force {
		err = fault.New(fault.InvalidState, "box %s is %s: stop it first, or use force", id, b.record.Status)
	}
	if err != nil {
		e.mu.Unlock()
		return err
	}
	execs := b.stopped()
	e.forget(id)
	e.mu.Unlock()
	endAll(execs, 0)
	return nil
}

// List returns the boxes, newest first.
func (e *Engine) List(context.Context) ([]core.Record, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	records := make([]core.Record, 0, len(e.order))
	for _, id := range slices.Backward(e.order) {
		records = append(records, e.boxes[id].record)
	}
	return records, nil
}

// Get returns one box.
func (e *Engine) Get(_ context.Context, id string) (core.Record, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.in(id, "")
	if err != nil {
		return core.Record{}, err
	}
	return b.record, nil
}

// Exec starts a process on the host.
func (e *Engine) Exec(_ context.Context, id string, o options.Exec) (*core.Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.in(id, api.Running)
	if err != nil {
		return nil, err
	}
	c, err := start(b, o)
	if err != nil {
		return nil, fault.Wrap(fault.Engine, err, "start %q", o.Cmd[0])
	}
	b.usage.Commands++
	if c.group == 0 {
		b.usage.ExecErrors++
	}
	b.execs = append(b.execs, c)
	return c.attach()
}

// Attach hands a command to another reader.
func (e *Engine) Attach(_ context.Context, boxID, execID string, _ *core.Position) (*core.Process, error) {
	c, err := e.find(boxID, execID)
	if err != nil {
		return nil, err
	}
	return c.attach()
}

// Execs returns the commands since the last start of the box, newest first.
func (e *Engine) Execs(_ context.Context, id string) ([]api.Exec, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.up(id)
	if err != nil {
		return nil, err
	}
	records := []api.Exec{}
	for _, c := range slices.Backward(b.execs) {
		r := c.now()
		r.Env = nil
		records = append(records, r)
	}
	return records, nil
}

// FindExec returns one command.
func (e *Engine) FindExec(_ context.Context, boxID, execID string) (api.Exec, error) {
	c, err := e.find(boxID, execID)
	if err != nil {
		return api.Exec{}, err
	}
	return c.now(), nil
}

// AwaitExec waits until a command has ended.
func (e *Engine) AwaitExec(ctx context.Context, boxID, execID string) (api.Exec, error) {
	c, err := e.find(boxID, execID)
	if err != nil {
		return api.Exec{}, err
	}
	select {
	case <-c.done:
		return c.now(), nil
	case <-ctx.Done():
		return api.Exec{}, fault.Of(ctx.Err())
	}
}

// CancelExec ends a command's process group.
func (e *Engine) CancelExec(ctx context.Context, boxID, execID string, grace time.Duration) (api.Exec, error) {
	if err := e.running(boxID); err != nil {
		return api.Exec{}, err
	}
	c, err := e.find(boxID, execID)
	if err != nil {
		return api.Exec{}, err
	}
	if !c.end(api.ExecCanceled, api.ReasonCanceled, grace) {
		return api.Exec{}, fault.New(fault.InvalidState, "exec %s has ended", execID)
	}
	return e.AwaitExec(ctx, boxID, execID)
}

// SignalExec sends a signal to a command's own process.
func (e *Engine) SignalExec(_ context.Context, boxID, execID string, sig int) (api.Exec, error) {
	if err := e.running(boxID); err != nil {
		return api.Exec{}, err
	}
	c, err := e.find(boxID, execID)
	if err != nil {
		return api.Exec{}, err
	}
	return c.now(), c.kill(sig)
}

// InterruptExec sends SIGINT to a command's process group.
func (e *Engine) InterruptExec(_ context.Context, boxID, execID string) (api.Exec, error) {
	if err := e.running(boxID); err != nil {
		return api.Exec{}, err
	}
	c, err := e.find(boxID, execID)
	if err != nil {
		return api.Exec{}, err
	}
	return c.now(), c.interrupt()
}

func (e *Engine) find(boxID, execID string) (*control, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.up(boxID)
	if err != nil {
		return nil, err
	}
	for _, c := range b.execs {
		if c.record.ID == execID {
			return c, nil
		}
	}
	return nil, fault.New(fault.ExecNotFound, "no exec %q in box %s", execID, boxID)
}

// Sweep removes boxes that are not running.
func (e *Engine) Sweep(_ context.Context, olderThan time.Duration) (core.Swept, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var swept core.Swept
	for _, id := range slices.Clone(e.order) {
		r := e.boxes[id].record
		if r.Status == api.Stopped && time.Since(*r.StoppedAt) >= olderThan {
			e.forget(id)
			swept.Boxes = append(swept.Boxes, id)
		}
	}
	return swept, nil
}

// Usage returns only counts of commands and of their streams.
func (e *Engine) Usage(_ context.Context, id string) (core.Usage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.in(id, "")
	if err != nil {
		return core.Usage{}, err
	}
	u := b.usage
	for _, c := range b.execs {
		u.StdinBytes += c.counts.Stdin.Load()
		u.OutputBytes += c.counts.Output.Load()
	}
	return u, nil
}

// Measure returns what Usage knows of the boxes that are up.
func (e *Engine) Measure(context.Context) (all []core.Measured, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.boxes {
		if b.record.Status.Up() {
			all = append(all, core.Measured{Record: b.record, At: time.Now()})
		}
	}
	return all, nil
}

// Expiries returns how many boxes came to the end of their time.
func (e *Engine) Expiries(context.Context) (core.Expiries, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ends, nil
}

// Close does nothing, because boxes go on running.
func (e *Engine) Close() error { return nil }

// in returns the box if it is in the state want; with "", any state will do.
// e.mu is held.
func (e *Engine) in(id string, want api.BoxStatus) (*box, error) {
	b, ok := e.boxes[id]
	if !ok {
		return nil, fault.New(fault.BoxNotFound, "no box %q", id)
	}
	if want != "" && b.record.Status != want {
		return nil, fault.New(fault.InvalidState, "box %s is %s, not %s", id, b.record.Status, want)
	}
	return b, nil
}

// up returns the box if it is running or paused. e.mu is held.
func (e *Engine) up(id string) (*box, error) {
	b, err := e.in(id, "")
	if err == nil && !b.record.Status.Up() {
		return e.in(id, api.Running)
	}
	return b, err
}

// forget removes the box from the map and the list. e.mu is held.
func (e *Engine) forget(id string) {
	delete(e.boxes, id)
	e.order = slices.DeleteFunc(e.order, func(other string) bool { return other == id })
}

// Images is [core.Images] with fixed images, which have no commands of their own.
type Images map[string]core.Image

// Resolve returns the image of ref.
func (i Images) Resolve(_ context.Context, ref string) (core.Image, error) {
	img, ok := i[ref]
	if !ok {
		return core.Image{}, fault.New(fault.Image, "no image %q", ref)
	}
	return img, nil
}

// Command returns no command.
func (i Images) Command(ctx context.Context, ref string) ([]string, error) {
	_, err := i.Resolve(ctx, ref)
	return nil, err
}
