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

// await waits until a box is in a state, or gone where the state is "".
func (s *suite) await(t *testing.T, box *core.Box, state api.BoxStatus) {
	t.Helper()
	ctx := s.context(t)
	for {
		rec, err := s.engine.Get(ctx, box.ID())
		if gone := fault.Is(err, fault.BoxNotFound); err != nil && !gone || ctx.Err() != nil {
			t.Fatalf("%+v, %v, want a box that is %q", rec, err, state)
		}
		if rec.Status == state {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// expiry tests what becomes of boxes whose time has come, and that the time begins
// anew with a start, a resume and a change.
func expiry(t *testing.T, s *suite) {
	for _, tt := range []struct {
		name, onExpiry string
		autoRemove     bool
		status         api.BoxStatus // then; "" for one that is gone
	}{
		{"by default", "", false, api.Stopped},
		{"stop", options.ExpiryStop, false, api.Stopped},
		{"stop, with auto_remove", options.ExpiryStop, true, ""},
		{"pause", options.ExpiryPause, false, api.Paused},
		{"remove", options.ExpiryRemove, false, ""},
	} {
		if tt.onExpiry == options.ExpiryPause && s.lacks(Pause) {
			continue // the test of pauses sees that it is refused
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box, rec := s.create(t, func(o *options.Box) { o.TTLSeconds, o.OnExpiry, o.AutoRemove = 1, tt.onExpiry, tt.autoRemove })
			if rec.ExpiresAt == nil {
				t.Fatalf("a new box: %+v", rec)
			}
			at := *rec.ExpiresAt
			s.await(t, box, tt.status)
			if late := time.Since(at); late < 0 {
				t.Errorf("it came %v too early", -late)
			}
			if tt.status == "" {
				return
			}
			s.expired(t, box)
			if s.lacks(Stop) {
				_, err := box.Start(s.context(t))
				want(t, err, fault.Unsupported)
				return
			}
			var err error
			if tt.status == api.Paused {
				rec, err = box.Resume(s.context(t))
			} else {
				rec, err = box.Start(s.context(t))
			}
			if err != nil || rec.ExpiresAt == nil || !rec.ExpiresAt.After(at) || rec.Reason != "" {
				t.Errorf("with a new time: %+v, %v", rec, err)
			}
			s.await(t, box, tt.status)
		})
	}
}

// expired wants a box to have no time any more, and to say why.
func (s *suite) expired(t *testing.T, box *core.Box) {
	t.Helper()
	rec, err := box.Record(s.context(t))
	if err != nil || rec.ExpiresAt != nil || rec.Reason != "expired" {
		t.Errorf("its time has come: %+v, %v", rec, err)
	}
}

// update tests changes of the time of a box: of one that is up they count from now, of
// one that is stopped from its start.
func update(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	seconds := func(n int) options.Update { return options.Update{TTLSeconds: &n} }
	is := func(what string, rec core.Record, err error, ttl int, timed bool) {
		t.Helper()
		members.Equal(t, what, members.Of{
			"failure": {err, nil}, "ttl": {rec.Options.TTLSeconds, ttl}, "a time": {rec.ExpiresAt != nil, timed},
		})
	}
	rec, err := box.Record(ctx)
	is("a new box", rec, err, 0, false)
	rec, err = box.Update(ctx, seconds(3600))
	is("a time for it", rec, err, 3600, true)
	first := rec.ExpiresAt
	remove := options.ExpiryRemove
	rec, err = box.Update(ctx, options.Update{OnExpiry: &remove})
	is("another end", rec, err, 3600, true)
	if rec.ExpiresAt == nil || !rec.ExpiresAt.Equal(*first) || rec.Options.OnExpiry != remove {
		t.Errorf("another end: %+v", rec)
	}
	rec, err = box.Update(ctx, seconds(0))
	is("no time", rec, err, 0, false)
	if s.stops(t, box) {
		rec, err = box.Update(ctx, seconds(1))
		is("a stopped box", rec, err, 1, false)
		rec, err = box.Start(ctx)
	} else {
		rec, err = box.Update(ctx, seconds(1))
	}
	is("a box that was started", rec, err, 1, true)
	s.await(t, box, "")
	_, err = box.Update(ctx, seconds(1))
	want(t, err, fault.BoxNotFound)
}

// expiries tests that the boxes whose time has come are counted, by the reason and by
// what became of them. Other tests add to the counts meanwhile.
func expiries(t *testing.T, s *suite) {
	ctx := s.context(t)
	before := must(s.engine.Expiries(ctx))(t)
	for _, change := range []func(*options.Box){
		func(o *options.Box) { o.TTLSeconds = 1 },
		func(o *options.Box) { o.TTLSeconds, o.OnExpiry = 1, options.ExpiryPause },
		func(o *options.Box) { o.TTLSeconds, o.OnExpiry = 1, options.ExpiryRemove },
		func(o *options.Box) { o.TTLSeconds, o.AutoRemove = 1, true },
		func(o *options.Box) { o.IdleSeconds = 1 },
		func(o *options.Box) { o.IdleSeconds, o.OnExpiry = 1, options.ExpiryPause },
		func(o *options.Box) { o.IdleSeconds, o.OnExpiry = 1, options.ExpiryRemove },
	} {
		s.box(t, change)
	}
	for {
		now, err := s.engine.Expiries(ctx)
		if err != nil {
			t.Fatalf("%+v, %v, before %+v", now, err, before)
		}
		of, idle := now.Expired, now.Idle
		if of.Stop > before.Expired.Stop && of.Pause > before.Expired.Pause && of.Remove >= before.Expired.Remove+2 &&
			idle.Stop > before.Idle.Stop && idle.Pause > before.Idle.Pause && idle.Remove > before.Idle.Remove {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
