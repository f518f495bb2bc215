package enginetest

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// uses are the requests that need a box to run, each of which a box answers that does.
var uses = map[string]func(ctx context.Context, box *core.Box) error{
	"awake": func(ctx context.Context, box *core.Box) error { _, err := box.Awake(ctx); return err },
	"run":   func(ctx context.Context, box *core.Box) error { _, err := box.Run(ctx, "true"); return err },
	"upload": func(ctx context.Context, box *core.Box) error {
		file := "/tmp/" + box.ID()
		defer func() { _ = os.Remove(file) }() // an engine without isolation writes it on the host
		_, err := box.Upload(ctx, core.Upload{Dest: file}, strings.NewReader("x"))
		return err
	},
	"download": func(ctx context.Context, box *core.Box) error {
		d, err := box.Download(ctx, options.Download{Path: "/etc/passwd"})
		if err != nil {
			return err
		}
		return d.Close()
	},
	"stat": func(ctx context.Context, box *core.Box) error {
		_, err := box.StatFile(ctx, options.StatFile{Path: "/etc/passwd"})
		return err
	},
	"connect": func(ctx context.Context, box *core.Box) error {
		if conn, err := box.Connect(ctx, 1); !fault.Is(err, fault.PortUnreachable) {
			if err == nil {
				_ = conn.Close()
			}
			return err
		}
		return nil
	},
}

// autoStart tests that what needs a box to run starts one with auto_start that is
// stopped, and resumes one that is paused, and that nothing else does.
func autoStart(t *testing.T, s *suite) {
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := s.context(t)
			box := s.box(t, func(o *options.Box) { o.AutoStart = true })
			is := func(state api.BoxStatus) {
				t.Helper()
				if rec, err := box.Record(ctx); err != nil || rec.Status != state {
					t.Errorf("the box: %+v, %v, want %s", rec, err, state)
				}
			}
			for state, end := range map[api.BoxStatus]func() error{
				api.Stopped: func() error { _, err := box.Stop(ctx, grace); return err },
				api.Paused:  func() error { _, err := box.Pause(ctx, false); return err },
			} {
				if state == api.Paused && s.lacks(Pause) {
					continue
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
				_, _ = box.Execs(ctx)
				_, _ = box.Usage(ctx)
				is(state)
				if err := use(ctx, box); err != nil {
					t.Errorf("of a box that is %s: %v", state, err)
				}
				is(api.Running)
			}
			off := false
			if _, err := box.Update(ctx, options.Update{AutoStart: &off}); err != nil {
				t.Error(err)
			}
			if _, err := box.Stop(ctx, grace); err != nil {
				t.Error(err)
			}
			want(t, use(ctx, box), fault.InvalidState)
			is(api.Stopped)
		})
	}
}

// autoStartOnce tests that requests that come at once start a box once.
func autoStartOnce(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t, func(o *options.Box) { o.AutoStart = true })
	for _, end := range []func() error{
		func() error { _, err := box.Stop(ctx, grace); return err },
		func() error {
			if s.lacks(Pause) {
				return nil
			}
			_, err := box.Pause(ctx, false)
			return err
		},
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		var asked sync.WaitGroup
		const requests = 8
		for range requests {
			asked.Go(func() {
				if _, err := box.Run(ctx, "true"); err != nil {
					t.Error(err)
				}
			})
		}
		asked.Wait()
		// A second start would have ended those of the first, which is one life.
		if execs, err := box.Execs(ctx); err != nil || len(execs)%requests != 0 || len(execs) == 0 {
			t.Errorf("%d execs, %v", len(execs), err)
		}
	}
	if err := box.Remove(ctx, true); err != nil {
		t.Fatal(err)
	}
	_, err := box.Run(ctx, "true")
	want(t, err, fault.BoxNotFound)
}

// autoStartStopping tests that a request for a box that is being stopped waits for that,
// and starts it again.
func autoStartStopping(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t, func(o *options.Box) { o.AutoStart = true })
	var asked sync.WaitGroup
	stop := once(func(string) {
		asked.Go(func() {
			if _, err := box.Stop(ctx, grace); err != nil {
				t.Error(err)
			}
		})
	})
	e := s.start(t, box, options.Exec{Cmd: sh("trap 'echo stopping; sleep 0.2; exit' TERM; echo ready; while :; do sleep 0.05; done")})
	r := s.watch(t, e, func(out string) {
		stop(out)
		if strings.HasSuffix(out, "stopping\n") {
			asked.Go(func() {
				if _, err := box.Run(ctx, "true"); err != nil {
					t.Error(err)
				}
			})
		}
	})
	asked.Wait()
	if r.Reason != api.ReasonBoxStopped {
		t.Errorf("the command of the box's first life: %+v", r)
	}
	if rec, err := box.Record(ctx); err != nil || rec.Status != api.Running {
		t.Errorf("the box: %+v, %v", rec, err)
	}
}
