package enginetest

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/test/members"
)

// grace is the time between SIGTERM and SIGKILL for boxes whose processes end
// at once, on a busy host too.
const grace = 20 * time.Second

func lifecycle(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	is := func(state api.BoxStatus, rec core.Record, err error) core.Record {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		running := state == api.Running
		members.Equal(t, "a box that is "+string(state), members.Of{
			"id": {rec.ID, box.ID()}, "state": {rec.Status, state}, "a PID": {rec.PID > 0, running && !s.lacks(OnHost)},
			"a start": {rec.StartedAt != nil, true}, "a stop": {rec.StoppedAt != nil, !running},
			"a creation": {rec.CreatedAt.IsZero(), false}, "updated before it was created": {rec.UpdatedAt.Before(rec.CreatedAt), false},
		})
		return rec
	}
	get := func() (core.Record, error) { return s.engine.Get(ctx, box.ID()) }

	rec, err := get()
	first := is(api.Running, rec, err)
	_, err = box.Start(ctx)
	want(t, err, fault.InvalidState)
	want(t, s.engine.Remove(ctx, box.ID(), false), fault.InvalidState)

	rec, err = box.Stop(ctx, grace)
	is(api.Stopped, rec, err)
	rec, err = get()
	is(api.Stopped, rec, err)
	_, err = box.Stop(ctx, grace)
	want(t, err, fault.InvalidState)

	rec, err = box.Start(ctx)
	is(api.Running, rec, err)
	rec, err = get()
	if again := is(api.Running, rec, err); !again.StartedAt.After(*first.StartedAt) || !again.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("started at %v and again at %v", first.StartedAt, again.StartedAt)
	}
	s.shell(t, box, "exit 0").wants(t, exited(0))

	if err := s.engine.Remove(ctx, box.ID(), true); err != nil {
		t.Error(err)
	}
	_, err = get()
	want(t, err, fault.BoxNotFound)

	stopped := s.box(t)
	if _, err := stopped.Stop(ctx, grace); err != nil {
		t.Error(err)
	}
	if err := s.engine.Remove(ctx, stopped.ID(), false); err != nil {
		t.Error("a stopped box needs force: ", err)
	}
}

func autoRemove(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t, func(o *options.Box) { o.AutoRemove = true })
	rec, err := box.Stop(ctx, grace)
	members.Equal(t, "the last record", members.Of{
		"failure": {err, nil}, "id": {rec.ID, box.ID()}, "state": {rec.Status, api.Stopped}, "a stop": {rec.StoppedAt != nil, true},
	})
	_, err = s.engine.Get(ctx, box.ID())
	want(t, err, fault.BoxNotFound)
}

func names(t *testing.T, s *suite) {
	ctx := s.context(t)
	named := func(o *options.Box) { o.Name = "enginetest" }
	box := s.box(t, named)
	rec, err := s.engine.Get(ctx, box.ID())
	if err != nil || rec.Options.Name != "enginetest" {
		t.Errorf("got %+v, %v", rec, err)
	}
	o := options.Defaults()
	s.root(&o)
	o.CPUs, o.Name = 1, "enginetest"
	_, _, err = s.runtime.Create(ctx, o)
	want(t, err, fault.AlreadyExists)
	if s.stops(t, box) {
		_, _, err = s.runtime.Create(ctx, o)
		want(t, err, fault.AlreadyExists) // a stopped box keeps its name
	}
	if err := s.engine.Remove(ctx, box.ID(), true); err != nil {
		t.Error(err)
	}
	s.box(t, named)
}

// sameID tests that all creates with one id, at once and later, return one box.
func sameID(t *testing.T, s *suite) {
	ctx := s.context(t)
	req := core.CreateRequest{ID: ids.Box.New(), Options: options.Defaults(), Image: core.Image{Layers: []string{s.Rootfs}}}
	s.root(&req.Options)
	req.Options.CPUs, req.Options.Name, req.Options.AutoRemove = 1, "same-id", false
	create := func(state api.BoxStatus) {
		rec, err := s.engine.Create(ctx, req)
		members.Equal(t, "the box", members.Of{"failure": {err, nil}, "id": {rec.ID, req.ID}, "state": {rec.Status, state}})
	}
	var tries sync.WaitGroup
	for range 4 {
		tries.Go(func() { create(api.Running) })
	}
	tries.Wait()
	if s.stops(t, s.runtime.At(req.ID)) {
		create(api.Stopped)
	}
	if err := s.engine.Remove(ctx, req.ID, true); err != nil {
		t.Error(err)
	}
	create(api.Running)
	if err := s.engine.Remove(ctx, req.ID, true); err != nil {
		t.Error(err)
	}
}

func list(t *testing.T, s *suite) {
	older, newer := s.box(t), s.box(t)
	recs, err := s.engine.List(s.context(t))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, rec := range recs {
		at[rec.ID] = i + 1
		if i > 0 && rec.CreatedAt.After(recs[i-1].CreatedAt) {
			t.Errorf("%s is newer than the one before it", rec.ID)
		}
	}
	if at[older.ID()] == 0 || at[newer.ID()] == 0 || at[older.ID()] < at[newer.ID()] {
		t.Errorf("places %d and %d of %d, want the newer first", at[older.ID()], at[newer.ID()], len(recs))
	}
}

func unknownBox(t *testing.T, s *suite) {
	ctx := s.context(t)
	for _, id := range []string{"box_aaaaaaaaaaaaaaaaaaaa", "", "../x", "name"} {
		_, err := s.engine.Get(ctx, id)
		want(t, err, fault.BoxNotFound)
		_, err = s.engine.Start(ctx, id)
		want(t, err, fault.BoxNotFound)
		_, err = s.engine.Stop(ctx, id, 0)
		want(t, err, fault.BoxNotFound)
		_, err = s.engine.Pause(ctx, id, false)
		want(t, err, fault.BoxNotFound)
		_, err = s.engine.Resume(ctx, id)
		want(t, err, fault.BoxNotFound)
		want(t, s.engine.Remove(ctx, id, true), fault.BoxNotFound)
		_, err = s.engine.Exec(ctx, id, options.Exec{Cmd: []string{"true"}})
		want(t, err, fault.BoxNotFound)
		_, err = s.engine.Usage(ctx, id)
		want(t, err, fault.BoxNotFound)
	}
}

// rootFileSystem tests root file systems that no box can be made from. Nothing
// must be left of such a box.
func rootFileSystem(t *testing.T, s *suite) {
	ctx := s.context(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/nosuchfolder", file} {
		o := options.Defaults()
		o.RootfsPath, o.CPUs, o.Name = path, 1, "nothing-is-left"
		_, _, err := s.runtime.Create(ctx, o)
		want(t, err, fault.InvalidArgument)
	}
	s.box(t, func(o *options.Box) { o.Name = "nothing-is-left" })
}

// disk tests that what a box wrote is there after a stop, and that the root
// file system that the box came from is unchanged.
func disk(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	file := "/tmp/" + box.ID()
	defer func() { _ = os.Remove(file) }() // an engine without isolation wrote it on the host
	s.shell(t, box, "echo kept >"+file).wants(t, exited(0))
	if _, err := box.Stop(ctx, grace); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if r := s.shell(t, box, "cat "+file); r.out != "kept\n" {
		t.Errorf("after a stop: %q %q", r.out, r.err)
	}
	if _, err := os.Lstat(filepath.Join(s.Rootfs, file)); s.Rootfs != "/" && err == nil {
		t.Error("the box wrote to its root file system's directory")
	}
}

func manyBoxes(t *testing.T, s *suite) {
	ctx := s.context(t)
	var wg sync.WaitGroup
	for range 8 {
		box := s.box(t)
		wg.Go(func() {
			if r := s.shell(t, box, "echo hi"); r.out != "hi\n" {
				t.Errorf("got %q, %q", r.out, r.err)
			}
			if err := s.engine.Remove(ctx, box.ID(), true); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// sweep tests that boxes that were stopped long enough ago are removed, and
// that running ones are not. Other tests of the suite have boxes in the same
// engine, none of which is stopped for an hour.
func sweep(t *testing.T, s *suite) {
	ctx := s.context(t)
	e := s.fresh(t)
	running, stopped := e.box(t), e.box(t)
	e.shell(t, stopped, "head -c 100000 /dev/zero >/tmp/swept-"+stopped.ID()+"; sync; rm -f /tmp/none").wants(t, exited(0))
	defer func() { _ = os.Remove("/tmp/swept-" + stopped.ID()) }() // an engine without isolation wrote it on the host
	if _, err := stopped.Stop(ctx, grace); err != nil {
		t.Fatal(err)
	}
	swept, err := e.engine.Sweep(ctx, time.Hour)
	if err != nil || len(swept.Boxes) != 0 {
		t.Errorf("within the hour: %+v, %v", swept, err)
	}
	swept, err = e.engine.Sweep(ctx, 0)
	if err != nil || !slices.Equal(swept.Boxes, []string{stopped.ID()}) || s.Rootfs != "/" && !s.lacks(OnHost) && swept.Bytes < 100000 {
		t.Errorf("got %+v, %v", swept, err)
	}
	_, err = e.engine.Get(ctx, stopped.ID())
	want(t, err, fault.BoxNotFound)
	e.shell(t, running, "true").wants(t, exited(0))
}
