package core_test

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// host returns two runtimes that use the same home.
func host(t *testing.T) (one, two *core.Runtime) {
	e := fake.NewEngine(t)
	images := fake.Images{"debian": {Ref: "debian", ID: "sha256:1", Layers: []string{"/"}}}
	return core.New(core.Config{Engine: e, Images: images, Owned: true}), core.New(core.Config{Engine: e, Images: images})
}

// create makes a box. Unless change says otherwise, the box is kept when it
// stops.
func create(t *testing.T, r *core.Runtime, change ...func(*options.Box)) *core.Box {
	t.Helper()
	o := valid()
	for _, c := range change {
		c(&o)
	}
	box, _, err := r.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func valid() options.Box {
	o := options.Defaults()
	o.Image, o.CPUs, o.AutoRemove = "debian", 1, false
	return o
}

func want(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	box := create(t, r)
	rec, err := box.Record(t.Context())
	if err != nil || rec.Status != api.Running || rec.ImageID != "sha256:1" {
		t.Errorf("got %+v, %v", rec, err)
	}
	if !regexp.MustCompile(`^box_[a-z2-7]{20}$`).MatchString(box.ID()) {
		t.Errorf("id %q", box.ID())
	}
}

// A box that asks for no disk size gets that of the ceiling, and its record
// says so.
func TestDiskCeiling(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ceiling, asked, want int }{{0, 0, 0}, {20, 0, 20}, {20, 5, 5}, {20, 50, 50}} {
		images := fake.Images{"debian": {Layers: []string{"/"}}}
		r := core.New(core.Config{Engine: fake.NewEngine(t), Images: images, DiskCeilingGB: tt.ceiling})
		box := create(t, r, func(o *options.Box) { o.DiskSizeGB = tt.asked })
		if rec, err := box.Record(t.Context()); err != nil || rec.Options.DiskSizeGB != tt.want {
			t.Errorf("ceiling %d, asked for %d: got %d, %v, want %d", tt.ceiling, tt.asked, rec.Options.DiskSizeGB, err, tt.want)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*options.Box)
		kind   fault.Kind
		says   string
	}{
		"unknown image": {func(o *options.Box) { o.Image = "nosuch" }, fault.Image, "nosuch"},
		"no rootfs":     {func(o *options.Box) { o.Image, o.RootfsPath = "", "/nosuch" }, fault.InvalidArgument, "/nosuch"},
		"cpus":          {func(o *options.Box) { o.CPUs = runtime.NumCPU() + 1 }, fault.InvalidArgument, "cpus"},
		"memory":        {func(o *options.Box) { o.MemoryMiB = 1 << 30 }, fault.InvalidArgument, "memory_mib"},
		"volume": {func(o *options.Box) {
			o.Image, o.Volumes = "nosuch", []options.Volume{{HostPath: "/no/such", GuestPath: "/b"}}
		}, fault.InvalidArgument, "/no/such"},
		"claim": {func(o *options.Box) {
			o.Image, o.Volumes = "nosuch", []options.Volume{{Claim: "data", GuestPath: "/b"}}
		}, fault.Unsupported, "volumes[0].claim"},
		"ports": {func(o *options.Box) { o.Network, o.Ports = options.NetworkNone, []options.Port{{GuestPort: 1}} }, fault.InvalidArgument, "ports"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := host(t)
			o := valid()
			tt.change(&o)
			_, _, err := r.Create(t.Context(), o)
			if f := fault.Of(err); f == nil || f.Kind != tt.kind || !strings.Contains(f.Message, tt.says) {
				t.Errorf("got %v, want %v about %s", err, tt.kind, tt.says)
			}
			m, err := r.Metrics(t.Context())
			if err != nil || m.BoxesFailed != 1 || m.BoxesCreated != 0 || m.Running != 0 {
				t.Errorf("metrics %+v, %v", m, err)
			}
		})
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	r, other := host(t)
	box := create(t, r, func(o *options.Box) { o.Name = "web" })
	for i := 0; i < 200; i++ { // enough for two ids with the same first letter
		create(t, r)
	}
	for ref, kind := range map[string]fault.Kind{
		"":                                   fault.BoxNotFound,
		"box_":                               fault.BoxNotFound,
		box.ID()[:7]:                         fault.BoxNotFound, // 3 characters are too few
		strings.TrimPrefix(box.ID(), "box_"): fault.BoxNotFound,
		"we":                                 fault.BoxNotFound,
		"WEB":                                fault.BoxNotFound,
	} {
		_, err := r.Get(t.Context(), ref)
		want(t, err, kind)
	}
	for _, ref := range []string{box.ID(), "web", box.ID()[:12]} {
		got, err := other.Get(t.Context(), ref)
		if err != nil || got.ID() != box.ID() {
			t.Errorf("%q: got %v, %v", ref, got, err)
		}
	}
}

// unlisted is an engine whose boxes can't be listed.
type unlisted struct{ core.Engine }

var errUnlisted = errors.New("there are too many boxes")

func (unlisted) List(context.Context) ([]core.Record, error) { return nil, errUnlisted }

// To find a box by its whole id, nobody reads the records of all boxes.
func TestGetByID(t *testing.T) {
	t.Parallel()
	r := core.New(core.Config{Engine: unlisted{fake.NewEngine(t)}, Images: fake.Images{"debian": {Ref: "debian", ID: "sha256:1", Layers: []string{"/"}}}})
	box := create(t, r, func(o *options.Box) { o.Name = "web" })
	if got, err := r.Get(t.Context(), box.ID()); err != nil || got.ID() != box.ID() {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := r.Get(t.Context(), "web"); !errors.Is(err, errUnlisted) {
		t.Errorf("by its name: got %v, want %v", err, errUnlisted)
	}
}

// engineOf is an engine with a fixed list of boxes.
type engineOf struct {
	core.Engine
	ids []string
}

func (e engineOf) List(context.Context) ([]core.Record, error) {
	var recs []core.Record
	for _, id := range e.ids {
		recs = append(recs, core.Record{ID: id})
	}
	return recs, nil
}

func TestAmbiguous(t *testing.T) {
	t.Parallel()
	r := core.New(core.Config{Engine: engineOf{ids: []string{"box_abcdef", "box_abcdxyz", "box_abcd"}}})
	for ref, kind := range map[string]fault.Kind{"box_abc": fault.BoxNotFound, "box_abcde": 0, "box_abcd": 0, "box_abcdx": 0} {
		box, err := r.Get(t.Context(), ref)
		if kind == 0 && (err != nil || !strings.HasPrefix(box.ID(), ref)) || kind != 0 && !fault.Is(err, kind) {
			t.Errorf("%q: got %v, %v", ref, box, err)
		}
	}
	r = core.New(core.Config{Engine: engineOf{ids: []string{"box_abcdef", "box_abcdxyz"}}})
	_, err := r.Get(t.Context(), "box_abcd")
	want(t, err, fault.Ambiguous)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	box := create(t, r, func(o *options.Box) { o.Name = "web" })
	want(t, r.Remove(t.Context(), "web", false), fault.InvalidState)
	if err := r.Remove(t.Context(), "web", true); err != nil {
		t.Error(err)
	}
	want(t, r.Remove(t.Context(), "web", true), fault.BoxNotFound)
	_, err := box.Record(t.Context())
	want(t, err, fault.BoxNotFound)
	_, err = box.Exec(t.Context(), options.Exec{Cmd: []string{"true"}})
	want(t, err, fault.BoxNotFound)
}

// TestForgetsGone checks that a runtime keeps no memory of all the boxes that end without
// it, as at the end of their time, and of none that is there.
func TestForgetsGone(t *testing.T) {
	t.Parallel()
	e := fake.NewEngine(t)
	r := core.New(core.Config{Engine: fake.Brief{Engine: e}})
	o := valid()
	o.Image, o.RootfsPath = "", "/"
	for range 2*core.MaxBoxes + 10 {
		if _, _, err := r.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Noted(); n > core.MaxBoxes {
		t.Errorf("%d boxes are noted, and none is there", n)
	}
	r = core.New(core.Config{Engine: e})
	for range 2*core.MaxBoxes + 10 {
		if _, _, err := r.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Noted(); n != 2*core.MaxBoxes+10 {
		t.Errorf("%d boxes are noted", n)
	}
}

// TestShutdown tests that a shutdown stops the boxes that this runtime created,
// and no others.
func TestShutdown(t *testing.T) {
	t.Parallel()
	r, other := host(t)
	mine, gone, stopped, theirs := create(t, r), create(t, r), create(t, r), create(t, other)
	temporary := create(t, r, func(o *options.Box) { o.AutoRemove = true })
	if err := r.Remove(t.Context(), gone.ID(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := stopped.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Shutdown(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
	}
	for box, state := range map[*core.Box]api.BoxStatus{mine: api.Stopped, stopped: api.Stopped, theirs: api.Running} {
		if rec, err := box.Record(t.Context()); err != nil || rec.Status != state {
			t.Errorf("got %v, %v, want %v", rec.Status, err, state)
		}
	}
	_, err := temporary.Record(t.Context())
	want(t, err, fault.BoxNotFound)
	_, _, err = r.Create(t.Context(), valid())
	want(t, err, fault.Stopped)
	_, err = mine.Start(t.Context())
	want(t, err, fault.Stopped)
	if _, err := r.List(t.Context()); err != nil {
		t.Error("a runtime that was shut down still lists: ", err)
	}
}

// unstopped is an engine that can't stop boxes.
type unstopped struct{ core.Engine }

func (unstopped) Stop(context.Context, string, time.Duration) (core.Record, error) {
	return core.Record{}, fault.New(fault.Unavailable, "the engine is busy")
}

// TestShutdownThatFails wants Close to remove a box that a shutdown could not stop.
func TestShutdownThatFails(t *testing.T) {
	t.Parallel()
	r := core.New(core.Config{Owned: true, Images: fake.Images{"debian": {Layers: []string{"/"}}}, Engine: unstopped{fake.NewEngine(t)}})
	box := create(t, r, func(o *options.Box) { o.AutoRemove = true })
	want(t, r.Shutdown(t.Context(), 0), fault.Unavailable)
	if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	_, err := box.Record(t.Context())
	want(t, err, fault.BoxNotFound)
}

// late is an engine whose creates succeed only after their caller has gone, and which
// does nothing for who has gone.
type late struct {
	core.Engine
	leave func()
}

func (e late) Create(ctx context.Context, req core.CreateRequest) (core.Record, error) {
	e.leave()
	return e.Engine.Create(context.WithoutCancel(ctx), req)
}

func (e late) Remove(ctx context.Context, id string, force bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.Engine.Remove(ctx, id, force)
}

// TestShutdownDuringCreate wants a box that was made while the runtime was shut down to be
// removed, also when its caller has gone.
func TestShutdownDuringCreate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var r *core.Runtime
	r = core.New(core.Config{Images: fake.Images{"debian": {Layers: []string{"/"}}}, Engine: late{fake.NewEngine(t), func() {
		cancel()
		if err := r.Shutdown(t.Context(), 0); err != nil {
			t.Error(err)
		}
	}}})
	_, _, err := r.Create(ctx, valid())
	want(t, err, fault.Stopped)
	if left, err := r.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left %d boxes, %v", len(left), err)
	}
}

// TestClose tests that Close removes the auto_remove boxes that an owning
// runtime created.
func TestClose(t *testing.T) {
	t.Parallel()
	owner, other := host(t)
	temporary := func(o *options.Box) { o.AutoRemove = true }
	removed, kept := create(t, owner, temporary), create(t, owner)
	theirs := create(t, other, temporary)
	for _, r := range []*core.Runtime{owner, other, owner} {
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	_, err := removed.Record(t.Context())
	want(t, err, fault.BoxNotFound)
	for _, box := range []*core.Box{kept, theirs} {
		if rec, err := box.Record(t.Context()); err != nil || rec.Status != api.Running {
			t.Errorf("got %v, %v, want a running box", rec.Status, err)
		}
	}
	_, _, err = owner.Create(t.Context(), valid())
	want(t, err, fault.Stopped)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	r, other := host(t)
	box := create(t, r)
	if _, err := create(t, r).Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	create(t, other)
	for _, cmd := range []string{"true", "false", "nosuchcommand"} {
		stream(t, box, options.Exec{Cmd: []string{cmd}})
	}
	got, err := r.Metrics(t.Context())
	if w := (api.RuntimeMetrics{BoxesCreated: 2, Running: 2, Commands: 3, ExecErrors: 1}); err != nil || got != w {
		t.Errorf("got %+v, %v, want %+v", got, err, w)
	}
}

// TestHammer uses one runtime from many goroutines, so that the race detector
// can find races.
func TestHammer(t *testing.T) {
	t.Parallel()
	r, _ := host(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				box, _, err := r.Create(t.Context(), valid())
				if err != nil {
					t.Error(err)
					return
				}
				stream(t, box, options.Exec{Cmd: []string{"true"}})
				_, stopErr := box.Stop(t.Context(), time.Second)
				_, listErr := r.List(t.Context())
				if err := r.Remove(t.Context(), box.ID(), true); err != nil || stopErr != nil || listErr != nil {
					t.Error(err, stopErr, listErr)
				}
			}
		})
	}
	wg.Wait()
	if recs, err := r.List(t.Context()); err != nil || len(recs) != 0 {
		t.Errorf("%d boxes are left, %v", len(recs), err)
	}
}
