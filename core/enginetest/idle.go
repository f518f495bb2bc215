package enginetest

import (
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/members"
)

// idle tests what becomes of boxes that nobody uses: a command that runs keeps one,
// and the time begins when it has ended.
func idle(t *testing.T, s *suite) {
	for _, tt := range []struct {
		name, onExpiry string
		status         api.BoxStatus // then; "" for one that is gone
	}{
		{"stop", "", api.Stopped},
		{"pause", options.ExpiryPause, api.Paused},
		{"remove", options.ExpiryRemove, ""},
	} {
		if tt.status == api.Paused && s.lacks(Pause) {
			continue // the test of pauses sees that it is refused
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box, made := s.create(t, func(o *options.Box) { o.IdleSeconds, o.OnExpiry = 1, tt.onExpiry })
			s.await(t, box, tt.status)
			if lived := time.Since(*made.StartedAt); lived < 900*time.Millisecond {
				t.Errorf("a box that may be unused for a second lived %v", lived)
			}
			if tt.status == "" {
				return
			}
			s.unused(t, box)
			begin := time.Now()
			if _, err := box.Resume(s.context(t)); tt.status == api.Paused && err != nil {
				t.Fatal(err)
			}
			if _, err := box.Start(s.context(t)); tt.status == api.Stopped && err != nil {
				t.Fatal(err)
			}
			s.await(t, box, tt.status)
			if lived := time.Since(begin); lived < 900*time.Millisecond {
				t.Errorf("the next time it lived %v", lived)
			}
		})
	}
	t.Run("used", func(t *testing.T) { t.Parallel(); used(t, s) })
	t.Run("changed", func(t *testing.T) { t.Parallel(); changedIdle(t, s) })
}

// unused wants a box to say that it has ended since nobody used it.
func (s *suite) unused(t *testing.T, box *core.Box) {
	t.Helper()
	if rec, err := box.Record(s.context(t)); err != nil || rec.Reason != "idle" {
		t.Errorf("nobody has used it: %+v, %v", rec, err)
	}
}

// used wants a box to live as long as a command runs, and as it may be unused after it.
// That is 2 s, as on a busy host the command may begin a second after the box.
func used(t *testing.T, s *suite) {
	box := s.box(t, func(o *options.Box) { o.IdleSeconds = 2 })
	begin := time.Now()
	if r := s.shell(t, box, "sleep 3.5"); r.Reason != api.ReasonExited {
		t.Fatalf("a command in a box that may be unused for 2 s: %+v", r)
	}
	s.await(t, box, api.Stopped)
	if lived := time.Since(begin); lived < 5400*time.Millisecond {
		t.Errorf("the box ended %v after a command of 3.5 s began", lived)
	}
}

// changedIdle changes how long a box may be unused.
func changedIdle(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t, func(o *options.Box) { o.IdleSeconds = 2 })
	seconds := func(n int) options.Update { return options.Update{IdleSeconds: &n} }
	rec, err := box.Update(ctx, seconds(0))
	members.Equal(t, "no end", members.Of{"failure": {err, nil}, "idle": {rec.Options.IdleSeconds, 0}})
	time.Sleep(2500 * time.Millisecond) // longer than it could have been unused
	if rec, err = box.Record(ctx); err != nil || rec.Status != api.Running {
		t.Fatalf("a box without end: %+v, %v", rec, err)
	}
	rec, err = box.Update(ctx, seconds(1))
	members.Equal(t, "a second", members.Of{"failure": {err, nil}, "idle": {rec.Options.IdleSeconds, 1}, "a time": {rec.ExpiresAt, (*time.Time)(nil)}})
	s.await(t, box, api.Stopped)
	_, err = box.Exec(ctx, options.Exec{Cmd: []string{"true"}})
	want(t, err, fault.InvalidState)
}
