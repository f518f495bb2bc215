package core_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// meddled is an engine in which something else happens before a request is done.
type meddled struct {
	core.Engine
	starting, uploading func() error
}

func (m *meddled) Start(ctx context.Context, id string) (core.Record, error) {
	if err := m.starting(); err != nil {
		return core.Record{}, err
	}
	return m.Engine.Start(ctx, id)
}

func (m *meddled) Upload(ctx context.Context, id string, u core.Upload, content io.Reader) (api.Uploaded, error) {
	if m.uploading != nil {
		_, _ = io.CopyN(io.Discard, content, 1)
		return api.Uploaded{}, m.uploading()
	}
	return m.Engine.Upload(ctx, id, u, content)
}

// TestAutoStartFails wants requests for a box that can't be started to be told why,
// each of them, and the box to be started when it can be.
func TestAutoStartFails(t *testing.T) {
	t.Parallel()
	m := &meddled{Engine: fake.NewEngine(t)}
	r := core.New(core.Config{Engine: m, Images: fake.Images{"debian": {Layers: []string{"/"}}}})
	box := create(t, r, func(o *options.Box) { o.AutoStart = true })
	if _, err := box.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	m.starting = func() error { return fault.New(fault.Storage, "the disk is full") }
	for range 2 {
		_, err := box.Run(t.Context(), "true")
		want(t, err, fault.Storage)
		if err == nil || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), box.ID()) {
			t.Errorf("it says %v", err)
		}
	}
	m.starting = func() error { return nil }
	if _, err := box.Run(t.Context(), "true"); err != nil {
		t.Error(err)
	}
}

// TestAutoStartStopped stops a box again and again while a request waits for it, which
// ends with the box's refusal.
func TestAutoStartStopped(t *testing.T) {
	t.Parallel()
	m := &meddled{Engine: fake.NewEngine(t)}
	r := core.New(core.Config{Engine: m, Images: fake.Images{"debian": {Layers: []string{"/"}}}})
	box := create(t, r, func(o *options.Box) { o.AutoStart = true })
	if _, err := box.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	starts := 0
	m.starting = func() error {
		starts++
		return fault.New(fault.InvalidState, "it is being stopped")
	}
	_, err := box.Run(t.Context(), "true")
	want(t, err, fault.InvalidState)
	if starts == 0 || starts > 5 {
		t.Errorf("%d starts", starts)
	}
}

// TestAutoStartUpload wants no upload to begin again of which content was read.
func TestAutoStartUpload(t *testing.T) {
	t.Parallel()
	uploads := 0
	m := &meddled{Engine: fake.NewEngine(t), starting: func() error { return nil }, uploading: func() error {
		uploads++
		return fault.New(fault.InvalidState, "the source of the content has stopped")
	}}
	r := core.New(core.Config{Engine: m, Images: fake.Images{"debian": {Layers: []string{"/"}}}})
	box := create(t, r, func(o *options.Box) { o.AutoStart = true })
	_, err := box.Upload(t.Context(), core.Upload{Dest: "/tmp/x"}, strings.NewReader("content"))
	want(t, err, fault.InvalidState)
	if uploads != 1 {
		t.Errorf("it was begun %d times", uploads)
	}
}
