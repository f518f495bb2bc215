package spool

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/core/store"
	"sandbox/test/boxes"
)

// followed starts a command in a store, and returns the exec as another process reads it.
func followed(t *testing.T, h *home, script string) *Exec {
	t.Helper()
	command, err := h.box.Exec(t.Context(), options.Exec{Cmd: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.Start(command, false)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Read(h.dir).Get(h.box.ID(), e.id)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// bound is a context for what must not hang.
func bound(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestReadWhileWritten reads output that another store writes, in pieces and to the end,
// and wants every byte, in its order.
func TestReadWhileWritten(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := followed(t, h, `i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i; [ $((i%50)) = 0 ] && sleep 0.02; done; echo bad >&2; exit 4`)
	reader, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	o, err := e.Observe([2]int64{4, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var out [2]bytes.Buffer
	buf := make([]byte, MaxEvent)
	for !reader.Done() {
		if err := reader.Wait(bound(t)); err != nil {
			t.Fatal(err)
		}
		event, err := reader.Next(buf)
		if err != nil {
			t.Fatal(err)
		}
		if event != nil && event.Kind == Log {
			out[event.Stream].Write(event.Data)
		}
		if event != nil && event.Kind == Gap {
			t.Errorf("a gap: %+v", event)
		}
	}
	lines := strings.Fields(out[Stdout].String())
	if len(lines) != 300 || lines[299] != "300" || out[Stderr].String() != "bad\n" {
		t.Errorf("%d lines, %q", len(lines), out[Stderr].String())
	}
	var observed bytes.Buffer
	for ended := false; !ended; ended, _ = o.Ended() {
		s, n, err := o.Next(buf)
		if err != nil {
			t.Fatal(err)
		}
		if s == Stdout {
			observed.Write(buf[:n])
		}
	}
	if from, _ := o.From(); observed.String() != out[Stdout].String()[from:] {
		t.Errorf("observed %d bytes from %d on", observed.Len(), from)
	}
	if rec := e.Record(); *rec.ExitCode != 4 || *rec.StderrBytes != 4 {
		t.Errorf("%+v", rec)
	}
	if places := Read(h.dir).Places(h.box.ID()); len(places) != 1 || places[0].ID != e.id {
		t.Errorf("%+v", places)
	}
}

// TestReadBehindDrops wants a reader of another process to hold nothing, and to be told of
// each gap: what it reads is what was written there.
func TestReadBehindDrops(t *testing.T) {
	t.Parallel()
	h := newHome(t, 1<<20)
	e := followed(t, h, `yes 123456789 | head -c 30000000`)
	reader, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	own, err := h.Get(h.box.ID(), e.id)
	if err != nil {
		t.Fatal(err)
	}
	boxes.Await(t, "the first output to be dropped", func() bool { return *own.Record().StdoutBytes >= 4<<20 })
	var at int64
	gaps, events := 0, 0
	buf := make([]byte, MaxEvent)
	for !reader.Done() {
		if err := reader.Wait(bound(t)); err != nil {
			t.Fatal(err)
		}
		event, err := reader.Next(buf)
		switch {
		case err != nil:
			t.Fatal(err)
		case event == nil:
		case event.Kind == Gap:
			at = event.Next[Stdout]
			gaps++
		case event.Kind == Log:
			if events++; events%20 == 0 {
				time.Sleep(20 * time.Millisecond) // so that it is late, and reads what is being dropped
			}
			for _, c := range event.Data {
				if want := "123456789\n"[at%10]; c != want {
					t.Fatalf("byte %d is %q, want %q", at, c, want)
				}
				at++
			}
		}
	}
	if at != 30000000 || gaps == 0 {
		t.Errorf("%d bytes, %d gaps", at, gaps)
	}
}

// TestReadUnsure wants an error of readers that can't learn whether what they read was
// dropped meanwhile: it may be a hole.
func TestReadUnsure(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := followed(t, h, "echo x; sleep 600")
	reader, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	o, err := e.Observe([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := reader.Wait(bound(t)); err != nil { // for the index
		t.Fatal(err)
	}
	head, err := os.OpenFile(e.out.base+indexSuffix, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer head.Close()
	if _, err := head.WriteAt(make([]byte, markSize), 0); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, MaxEvent)
	if event, err := reader.Next(buf); !fault.Is(err, fault.Storage) {
		t.Errorf("event %+v, error %v", event, err)
	}
	if _, n, err := o.Next(buf); !fault.Is(err, fault.Storage) {
		t.Errorf("%d bytes, error %v", n, err)
	}
}

// TestReadOfRemoved wants a reader to end with the box of its exec, and a wait too.
func TestReadOfRemoved(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := followed(t, h, "echo x; sleep 600")
	waited := make(chan error, 1)
	joined := &reader{e: e, weak: true}
	if err := e.join(joined); err != nil {
		t.Fatal(err)
	}
	defer joined.leave()
	go func() { waited <- e.Wait(bound(t)) }()
	h.Remove(h.box.ID())
	if err := <-waited; err != nil || e.Record().FinishedAt == nil {
		t.Errorf("%v, %+v", err, e.Record())
	}
	if _, err := Read(h.dir).Get(h.box.ID(), e.id); !fault.Is(err, fault.ExecNotFound) {
		t.Error(err)
	}
}

// awaited returns an exec that another process writes, and a wait for its end, which has begun.
func (s *Store) awaited(t *testing.T, id string) (rec written, waited chan error) {
	t.Helper()
	rec = written{Exec: api.Exec{ID: id, BoxID: childBox, Status: api.ExecRunning, CreatedAt: time.Now()}}
	if err := s.records(childBox).Put(id, rec, false); err != nil {
		t.Fatal(err)
	}
	e, err := s.Get(childBox, id)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{e: e, weak: true}
	if err := e.join(r); err != nil { // here, so that it is followed when this returns
		t.Fatal(err)
	}
	t.Cleanup(func() { r.leave() })
	waited = make(chan error, 1)
	go func() { waited <- e.Wait(bound(t)) }()
	rec.Exec = rec.Ended(api.ExitStatus{Status: api.ExecSucceeded, FinishedAt: time.Now()})
	return rec, waited
}

// TestReadFailsAtTheEnd wants a reader to be told of an end that could not be read when the
// last event of its files came.
func TestReadFailsAtTheEnd(t *testing.T) {
	t.Parallel()
	dir, aside := t.TempDir(), t.TempDir()
	s := Read(dir)
	last, waited := s.awaited(t, childID)
	// The directory in the record's place can't be read. It is replaced where nobody watches.
	place, link := filepath.Join(aside, "record"), filepath.Join(aside, "link")
	err := errors.Join(os.Symlink(aside, place), os.Symlink(place, link), os.Rename(link, filepath.Join(dir, childBox, childID+".json")))
	if err != nil {
		t.Fatal(err)
	}
	// The watcher reads its events one after the other, but those that came together in any
	// order: behind the second of two others the last one of the exec has been read.
	for _, id := range []string{"exec_bbbbbbbbbbbbbbbbbbbb", "exec_cccccccccccccccccccc"} {
		rec, seen := s.awaited(t, id)
		if err := errors.Join(s.records(childBox).Put(id, rec, false), <-seen); err != nil {
			t.Fatal(err)
		}
	}
	kept := store.Dir[written]{Path: aside}
	if err := errors.Join(kept.Put(childID, last, false), os.Rename(filepath.Join(aside, childID+".json"), place)); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// TestReadDoesNothing wants a command that is read alone not to be written or ended.
func TestReadDoesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := followed(t, h, "sleep 600")
	if err := e.Cancel(t.Context(), 0); !fault.Is(err, fault.InvalidState) || !strings.Contains(err.Error(), "main command") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := e.Wait(ctx); err == nil {
		t.Error("it has ended")
	}
	if e.followed || len(e.readers) != 0 || !e.Shared() {
		t.Error("it is followed without a reader")
	}
}

// TestReadMany reads more execs at once than the kernel gives a user inotify descriptors,
// which all users of the host share.
func TestReadMany(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	first := followed(t, h, "read x; echo late")
	store, readers := Read(h.dir), []*Events{}
	for range 300 {
		e, err := store.Get(h.box.ID(), first.id)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := e.Events(0)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		readers = append(readers, reader)
	}
	h.Remove(h.box.ID())
	for _, reader := range readers {
		if err := reader.Wait(bound(t)); err != nil {
			t.Fatal(err)
		}
		reader.Close()
	}
	if store.watcher.events != nil {
		t.Error("the descriptor is open although nobody reads")
	}
}
