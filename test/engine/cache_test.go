package engine_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/test/boxes"
)

// listed returns the ids and states, newest first.
func listed(t *testing.T, e core.Engine) string {
	t.Helper()
	recs, err := e.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, r := range recs {
		s = append(s, r.ID[4:]+" "+string(r.Status)+" "+r.Reason)
	}
	return strings.Join(s, ", ")
}

// Every change that another one made is seen by the first look after it: here
// a thousand of them, many within one tick of the file system's clock.
func TestCacheFresh(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e, plain := boxes.OpenConfig(t, engine.Config{Home: home, Cached: true}), boxes.Open(t, home)
	if got := listed(t, e); got != "" {
		t.Errorf("a new home lists %q", got)
	}
	records := record.Open(home)
	now := time.Now()
	ids := []string{boxes.ID(home, 1), boxes.ID(home, 2), boxes.ID(home, 3)}
	for i := range 1000 {
		id := ids[i%len(ids)]
		var err error
		if i%7 == 0 {
			err = records.Delete(id)
		} else {
			err = records.Put(id, record.Box{Record: core.Record{ID: id, Status: api.Stopped, Reason: strings.Repeat("x", i%5), CreatedAt: now}}, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := listed(t, e), listed(t, plain); got != want {
			t.Fatalf("change %d: got %q, want %q", i, got, want)
		}
		got, err1 := e.Get(t.Context(), id)
		want, err2 := plain.Get(t.Context(), id)
		if (err1 == nil) != (err2 == nil) || got.Reason != want.Reason {
			t.Fatalf("change %d: got %+v, %v, want %+v, %v", i, got, err1, want, err2)
		}
	}
}

// The end of an init that no shim watches is seen too.
func TestCacheInitDied(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.OpenConfig(t, engine.Config{Home: home, Cached: true})
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	init, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	b := record.Box{Record: core.Record{ID: boxes.ID(home, 1)}}
	b.Began(init)
	if err := record.Open(home).Put(b.ID, b, false); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, e); !strings.Contains(got, "running") {
		t.Errorf("got %q", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for range 2 {
		if got := listed(t, e); !strings.Contains(got, "failed init_died") {
			t.Errorf("got %q", got)
		}
	}
}

// A directory that is replaced, a queue that ran over, a damaged record: the same
// is listed as without a cache.
func TestCacheDisturbed(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e, plain := boxes.OpenConfig(t, engine.Config{Home: home, Cached: true}), boxes.Open(t, home)
	records := record.Open(home)
	put := func(n int) {
		t.Helper()
		b := record.Box{Record: core.Record{ID: boxes.ID(home, n), Status: api.Stopped, CreatedAt: time.Unix(int64(n), 0)}}
		if err := records.Put(b.ID, b, false); err != nil {
			t.Fatal(err)
		}
	}
	same := func(what string) {
		t.Helper()
		if got, want := listed(t, e), listed(t, plain); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	put(1)
	same("one")
	damaged := filepath.Join(records.Path, boxes.ID(home, 1)+".json")
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	written := time.Unix(1, 0)
	if err := os.Chtimes(damaged, written, written); err != nil {
		t.Fatal(err)
	}
	same("damaged")
	if got := listed(t, e); !strings.Contains(got, "failed record_damaged") {
		t.Errorf("damaged: got %q", got)
	}
	for name, e := range map[string]core.Engine{"cached": e, "plain": plain} {
		rec, err1 := e.Get(t.Context(), boxes.ID(home, 1))
		recs, err2 := e.List(t.Context())
		if err := errors.Join(err1, err2); err != nil || !rec.CreatedAt.Equal(written) || !recs[0].CreatedAt.Equal(written) {
			t.Errorf("damaged, %s: got %+v, listed %+v, %v, want the time of the file", name, rec, recs, err)
		}
	}
	put(2)
	same("damaged and another")
	if err := os.Rename(records.Path, records.Path+".old"); err != nil {
		t.Fatal(err)
	}
	same("moved away")
	put(3)
	same("a new directory")
	put(4)
	a, b := filepath.Join(records.Path, ".a"), filepath.Join(records.Path, ".b")
	if err := os.WriteFile(a, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 9000 { // two events each: more than the queue holds by default
		if err := os.Rename(a, b); err != nil {
			t.Fatal(err)
		}
		a, b = b, a
	}
	put(5)
	same("many changes")
}

// Many at once get what is, and see what they did themselves.
func TestCacheConcurrent(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.OpenConfig(t, engine.Config{Home: home, Cached: true})
	records := record.Open(home)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			id := boxes.ID(home, n)
			for i := range 100 {
				b := record.Box{Record: core.Record{ID: id, Status: api.Stopped, Reason: strings.Repeat("x", i)}}
				if err := records.Put(id, b, false); err != nil {
					t.Error(err)
				}
				if !strings.Contains(listed(t, e), id[4:]+" stopped "+b.Reason) {
					t.Errorf("change %d of %d is not seen", i, n)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkList(b *testing.B) {
	home := b.TempDir()
	self, err := process.Of(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	for n := range 50 {
		box := record.Box{Record: core.Record{ID: boxes.ID(home, n)}}
		box.Began(self)
		if err := record.Open(home).Put(box.ID, box, false); err != nil {
			b.Fatal(err)
		}
	}
	e := boxes.OpenConfig(b, engine.Config{Home: home, Cached: true})
	for b.Loop() {
		if recs, err := e.List(b.Context()); err != nil || len(recs) != 50 {
			b.Fatal(len(recs), err)
		}
	}
}
