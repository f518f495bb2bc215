// Package core is the domain of the project: a [Runtime] makes boxes, a [Box]
// runs commands, and an [Exec] is one such command. This package decides what
// may happen. The work is done behind two small interfaces that it declares,
// [Engine] and [Images]; package core/local supplies the real implementations.
package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/hostpath"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// Version is the version of the library, the command line and the programs.
const Version = "0.1.0"

// DefaultGrace is how long a stop waits between SIGTERM and SIGKILL.
const DefaultGrace = 10 * time.Second

// Config holds the parts and the settings of a Runtime.
type Config struct {
	Engine Engine
	Images Images
	// Owned ties this runtime's auto_remove boxes to this process: they are
	// removed by Close, or when the process ends, however it ends.
	Owned bool
	// DiskCeilingGB is the disk size of boxes that ask for none, in GB of 1024
	// MiB. 0 means that such boxes have no limit of their own.
	DiskCeilingGB int
	// Processes is how many processes and threads a box may have; 0 means
	// [options.DefaultProcesses].
	Processes int
	// Elsewhere says that the boxes are on other hosts: what this one has bounds none
	// of them.
	Elsewhere bool
}

// Runtime makes and finds boxes. It is safe for concurrent use.
type Runtime struct {
	engine Engine
	images Images
	owned  bool
	diskGB int  // disk size of boxes that ask for none
	tasks  int  // processes and threads of a box
	far    bool // the boxes are elsewhere
	stats  counters

	mu       sync.Mutex
	shutdown bool
	made     map[string]creation // the boxes that this runtime created, and some of them that are gone
	most     int                 // how many made may have before those that are gone are looked for
}

type creation struct {
	autoRemove bool
	took       time.Duration
}

type counters struct {
	created, failed, execs, execErrors atomic.Int64
}

// New returns a runtime. It starts nothing.
func New(c Config) *Runtime {
	return &Runtime{engine: c.Engine, images: c.Images, owned: c.Owned, diskGB: c.DiskCeilingGB, tasks: c.Processes, far: c.Elsewhere, made: map[string]creation{}, most: MaxBoxes}
}

// Create makes a box and starts it. o was returned by a Decode function or has
// passed its Check method. An image that is not in the store is pulled. Errors:
// Stopped, InvalidArgument (ports without a network, a limit of the host, a
// volume), Image, and those of [Boxes].Create.
//
// The record that Create returns is the one that the engine made. It is not
// read a second time, because that could fail: a box may end right after its
// start, and with auto_remove it is then gone.
func (r *Runtime) Create(ctx context.Context, o options.Box) (*Box, Record, error) {
	return r.counted(r.create(ctx, ids.Box.New(), o, r.owned))
}

// CreateOnce does what Create does for a box whose id the caller has chosen, so
// that the caller can try again when it does not know whether the last try made
// the box, as after a crash. All tries with an id return one and the same box,
// in whatever state it is; while one of them makes it, the others wait.
func (r *Runtime) CreateOnce(ctx context.Context, id string, o options.Box) (*Box, Record, error) {
	if rec, err := r.engine.Get(ctx, id); err == nil && rec.Status != api.Created {
		return r.box(rec), rec, nil // even if its image or its volumes have gone
	}
	return r.counted(r.create(ctx, id, o, r.owned))
}

// CreateOwned does what Create does, and ties the box to this process if the
// box has auto_remove, whatever [Config] says of other boxes.
func (r *Runtime) CreateOwned(ctx context.Context, o options.Box) (*Box, Record, error) {
	return r.counted(r.create(ctx, ids.Box.New(), o, true))
}

func (r *Runtime) counted(rec Record, err error) (*Box, Record, error) {
	if err != nil {
		r.stats.failed.Add(1)
		return nil, Record{}, err
	}
	r.stats.created.Add(1)
	return r.box(rec), rec, nil
}

// CreateOn does what CreateOwned does with an image that needs no name in the store,
// whose layers are there. The image of o is only told of in the box's record.
func (r *Runtime) CreateOn(ctx context.Context, img Image, o options.Box) (*Box, Record, error) {
	if err := r.check(o); err != nil {
		return r.counted(Record{}, err)
	}
	return r.counted(r.createOn(ctx, ids.Box.New(), img, o, true))
}

// check refuses what can't be made, or not any more.
func (r *Runtime) check(o options.Box) error {
	if err := r.refuseAfterShutdown(); err != nil {
		return err
	}
	if err := checkPorts(o); err != nil {
		return err
	}
	if r.far {
		return nil
	}
	return checkHost(o)
}

func (r *Runtime) create(ctx context.Context, id string, o options.Box, owned bool) (Record, error) {
	if err := r.check(o); err != nil {
		return Record{}, err
	}
	img := Image{Layers: []string{o.RootfsPath}}
	if o.RootfsPath == "" {
		var err error
		if img, err = r.images.Resolve(ctx, o.Image); err != nil {
			return Record{}, err
		}
	}
	return r.createOn(ctx, id, img, o, owned)
}

func (r *Runtime) createOn(ctx context.Context, id string, img Image, o options.Box, owned bool) (Record, error) {
	o.DiskSizeGB, o.Processes = cmp.Or(o.DiskSizeGB, r.diskGB), r.tasks
	o, err := o.Serve(img.Command, img.HealthCheck)
	if err != nil {
		return Record{}, err
	}
	start := time.Now()
	rec, err := r.engine.Create(ctx, CreateRequest{
		ID: id, Options: o, Image: img, Owned: owned && o.AutoRemove,
	})
	if err != nil {
		return Record{}, err
	}
	if !r.remember(rec, time.Since(start)) {
		return Record{}, errors.Join(errShutdown(), r.engine.Remove(context.WithoutCancel(ctx), rec.ID, true))
	}
	r.forgetGone(ctx)
	return rec, nil
}

// Command returns the command that the image of ref has of its own, for a run
// that names none. Errors: InvalidArgument, with the field cmd (the image has no
// command, or one that can't be run), and those of [Images].Command.
func (r *Runtime) Command(ctx context.Context, ref string) ([]string, error) {
	if err := r.refuseAfterShutdown(); err != nil {
		return nil, err
	}
	cmd, err := r.images.Command(ctx, ref)
	if err != nil {
		return nil, err
	}
	return cmd, options.CheckImageCommand(ref, cmd)
}

// Get returns the box that ref names: by its full id, by its name, or by a
// prefix of its id that no other box has and that has at least 4 characters
// after "box_". Errors: BoxNotFound, Ambiguous.
func (r *Runtime) Get(ctx context.Context, ref string) (*Box, error) {
	rec, err := r.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return r.box(rec), nil
}

// At returns a handle on the box with this full id. It does not look for the box:
// where there is none, the handle's methods fail with BoxNotFound.
func (r *Runtime) At(id string) *Box { return &Box{r: r, id: id} }

// List returns the records of all boxes of the home, newest first.
func (r *Runtime) List(ctx context.Context) ([]Record, error) { return r.engine.List(ctx) }

// Remove removes a box. It removes a running box only with force. Errors: as
// Get, and InvalidState.
func (r *Runtime) Remove(ctx context.Context, ref string, force bool) error {
	b, err := r.Get(ctx, ref)
	if err != nil {
		return err
	}
	return b.Remove(ctx, force)
}

// Sweep removes the boxes that have been stopped or failed for at least
// olderThan, and what a crash has left. It returns what it has removed also
// when it failed to remove something else.
func (r *Runtime) Sweep(ctx context.Context, olderThan time.Duration) (Swept, error) {
	swept, err := r.engine.Sweep(ctx, olderThan)
	for _, id := range swept.Boxes {
		r.forget(id)
	}
	return swept, err
}

// Metrics returns the counters of this runtime. The number of running boxes is
// that of the whole home.
func (r *Runtime) Metrics(ctx context.Context) (api.RuntimeMetrics, error) {
	recs, err := r.engine.List(ctx)
	if err != nil {
		return api.RuntimeMetrics{}, err
	}
	m := api.RuntimeMetrics{
		BoxesCreated: r.stats.created.Load(), BoxesFailed: r.stats.failed.Load(),
		Commands: r.stats.execs.Load(), ExecErrors: r.stats.execErrors.Load(),
	}
	for _, rec := range recs {
		if rec.Status == api.Running {
			m.Running++
		}
	}
	return m, nil
}

// Measure measures all boxes of the home that are up, paused ones too, in one pass
// that asks none of them. One that ends meanwhile may be left out. Errors: Storage.
func (r *Runtime) Measure(ctx context.Context) ([]Measured, error) { return r.engine.Measure(ctx) }

// Expiries returns how many boxes of the home came to the end of their time, whoever
// made them. Errors: Storage.
func (r *Runtime) Expiries(ctx context.Context) (Expiries, error) { return r.engine.Expiries(ctx) }

// Shutdown stops the boxes that this runtime created, all at once, and makes
// later creates and starts fail with Stopped. grace is the time that each box
// has between SIGTERM and SIGKILL. A second call does nothing.
func (r *Runtime) Shutdown(ctx context.Context, grace time.Duration) error {
	r.mu.Lock()
	done := r.shutdown
	r.shutdown = true
	ids := slices.Collect(maps.Keys(r.made))
	r.mu.Unlock()
	if done {
		return nil
	}
	return forEach(ids, func(id string) error {
		_, err := r.engine.Stop(ctx, id, grace)
		if err != nil && !fault.Is(err, fault.BoxNotFound) && !fault.Is(err, fault.InvalidState) {
			return err // the box is left to Close
		}
		r.forget(id) // stopped, or gone or stopped already
		return nil
	})
}

// Close closes the engine, after it has removed the boxes that this runtime
// created with auto_remove, if the runtime owns them. Other boxes go on
// running.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	r.shutdown = true
	ids := r.takeTemporary()
	r.mu.Unlock()
	err := forEach(ids, func(id string) error {
		err := r.engine.Remove(ctx, id, true)
		if fault.Is(err, fault.BoxNotFound) {
			return nil
		}
		return err
	})
	return errors.Join(err, r.engine.Close())
}

func (r *Runtime) refuseAfterShutdown() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shutdown {
		return errShutdown()
	}
	return nil
}

func errShutdown() error { return fault.New(fault.Stopped, "the runtime was shut down") }

// remember notes a box that was made, and returns true. When the runtime was
// shut down meanwhile, it notes nothing and returns false.
func (r *Runtime) remember(rec Record, took time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.shutdown {
		r.made[rec.ID] = creation{rec.Options.AutoRemove, took}
	}
	return !r.shutdown
}

func (r *Runtime) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.made, id)
}

// forgetGone forgets the boxes that are gone, when many are noted. What fails is tried again
// by the next create.
func (r *Runtime) forgetGone(ctx context.Context) {
	r.mu.Lock()
	many := len(r.made) > r.most
	r.mu.Unlock()
	if !many || ForgetGone(&r.mu, r.made, func() ([]string, error) { return r.ids(ctx) }) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = max(MaxBoxes, 2*len(r.made))
}

// ids returns the ids of all boxes of the home.
func (r *Runtime) ids(ctx context.Context) ([]string, error) {
	recs, err := r.engine.List(ctx)
	all := make([]string, len(recs))
	for i, rec := range recs {
		all[i] = rec.ID
	}
	return all, err
}

// takeTemporary forgets the noted boxes that end with the runtime, and returns their ids.
// r.mu is held.
func (r *Runtime) takeTemporary() []string {
	var ids []string
	for id, c := range r.made {
		if c.autoRemove && r.owned {
			ids = append(ids, id)
			delete(r.made, id)
		}
	}
	return ids
}

// minPrefix is the least number of characters behind "box_" that a prefix of an
// id must have.
const minPrefix = 4

// Find returns the record of the box that ref names; ref is read as
// [Runtime.Get] reads it. Errors: as Get.
func (r *Runtime) Find(ctx context.Context, ref string) (Record, error) {
	if ids.Box.Valid(ref) { // one record is read, and not those of all boxes
		if rec, err := r.engine.Get(ctx, ref); !fault.Is(err, fault.BoxNotFound) {
			return rec, err
		}
	}
	recs, err := r.engine.List(ctx)
	if err != nil {
		return Record{}, err
	}
	var found []Record
	for _, rec := range recs {
		if rec.ID == ref || rec.Options.Name == ref && ref != "" {
			return rec, nil
		}
		if len(ref) >= len(ids.Box)+minPrefix && ids.Box.Prefixes(ref) && strings.HasPrefix(rec.ID, ref) {
			found = append(found, rec)
		}
	}
	switch len(found) {
	case 0:
		return Record{}, fault.New(fault.BoxNotFound, "no box %q", ref)
	case 1:
		return found[0], nil
	}
	return Record{}, fault.New(fault.Ambiguous, "%d box ids begin with %q: use more characters of the id", len(found), ref)
}

// checkPorts refuses the ports of a box that has no network, because there is
// nothing to publish them from.
func checkPorts(o options.Box) error {
	if len(o.Ports) > 0 && o.Network == options.NetworkNone {
		return document.Invalid("ports", "network", "can't be published by a box of network None: use Isolated")
	}
	return nil
}

// checkHost refuses what this host does not have. The engine checks volumes
// more closely, but only after the image was pulled, which may take long; this
// check reports a missing volume before that.
func checkHost(o options.Box) error {
	var p document.Problems
	for i, v := range o.Volumes {
		p.When(v.Claim != "", fmt.Sprintf("volumes[%d].claim", i), fault.Unsupported.Row().Code, "is of a cluster, and boxes of this host have none: use host_path")
	}
	if err := p.Err(fault.Unsupported); err != nil {
		return err
	}
	for i, v := range o.Volumes {
		f, err := hostpath.Open(v.Within, v.HostPath)
		if err == nil {
			_ = f.Close()
		}
		p.When(errors.Is(err, os.ErrNotExist), fmt.Sprintf("volumes[%d].host_path", i), "missing", "%s", hostpath.Explain(err, v.Within, v.HostPath))
	}
	if err := CheckLimits(&o, &p); err != nil {
		return err
	}
	return p.Err(fault.InvalidArgument)
}

// Elsewhere reports whether the boxes are on other hosts, whose paths and limits are not
// those of this one.
func (r *Runtime) Elsewhere() bool { return r.far }

// CheckLimits adds to p what o asks for beyond what there is, as far as it is known
// here. It is an [options.HostCheck]. Errors: Internal.
func (r *Runtime) CheckLimits(o *options.Box, p *document.Problems) error {
	if r.far {
		return nil
	}
	return CheckLimits(o, p)
}

// CheckLimits adds to p what o asks for beyond what this host has. It is an
// [options.HostCheck]. Errors: Internal.
func CheckLimits(o *options.Box, p *document.Problems) error {
	n := runtime.NumCPU()
	p.When(o.CPUs > n, "cpus", "range", "is %d and must be at most %d, which this host has", o.CPUs, n)
	mib, err := HostMemoryMiB()
	p.When(err == nil && o.MemoryMiB > mib, "memory_mib", "range", "is %d and must be at most %d, which this host has", o.MemoryMiB, mib)
	return err
}

// forEach calls do for all ids at the same time and joins the failures.
func forEach(ids []string, do func(id string) error) error {
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { errs[i] = do(id) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
