package spool

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

const (
	childEnv = "SPOOL_TEST_CHILD" // the directory of the store, for a child of the test
	childBox = "box_aaaaaaaaaaaaaaaaaaaa"
	childID  = "exec_aaaaaaaaaaaaaaaaaaaa"
	kills    = 40
)

// inherited is an engine with one exec, whose descriptors a child inherits from
// its parent: 3 and 4 are the pipes, 5 ends with the command.
type inherited struct{ core.Engine }

func (inherited) Get(context.Context, string) (core.Record, error) {
	return core.Record{ID: childBox, Status: api.Running}, nil
}

func (inherited) Attach(context.Context, string, string, *core.Position) (*core.Process, error) {
	files := [3]*os.File{}
	for i := range files {
		_ = syscall.SetNonblock(3+i, true)
		files[i] = os.NewFile(uintptr(3+i), "inherited")
	}
	return &core.Process{Stdout: files[0], Stderr: files[1], Streams: &core.Streams{}, Control: exits{exit: files[2]}}, nil
}

type exits struct {
	core.Control
	exit *os.File
}

func (x exits) ExitFD() int { return int(x.exit.Fd()) }
func (x exits) Exit() (api.ExitStatus, error) {
	return api.ExitStatus{Status: api.ExecSucceeded, Reason: api.ReasonExited, FinishedAt: time.Now()}, nil
}
func (x exits) Release() error { return nil }

type childBoxes struct{ rt *core.Runtime }

func (b childBoxes) Status(context.Context, string) (api.BoxStatus, error) { return api.Running, nil }
func (b childBoxes) Exec(context.Context, string, string) (api.Exec, error) {
	return api.Exec{}, fault.New(fault.ExecNotFound, "no exec")
}
func (b childBoxes) Attach(ctx context.Context, box, exec string, have core.Position) (*core.Exec, error) {
	x, err := b.rt.Get(ctx, box)
	if err != nil {
		return nil, err
	}
	return x.AttachBehind(ctx, exec, have)
}

// told is an event that a reader had received before a kill.
type told struct {
	Seq    int64
	Stream Stream
	Len    int
	Sum    uint32
}

// pumpChild is the process that is killed. It spools, and a reader in it
// records each event that it receives, with one write(2) per event.
func pumpChild() {
	dir := os.Getenv(childEnv)
	s := Open(Config{Dir: dir, Limit: 1 << 30})
	rt := core.New(core.Config{Engine: inherited{}})
	if err := s.Adopt(context.Background(), childBoxes{rt}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	e, err := s.Get(childBox, childID)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	log, err := os.OpenFile(filepath.Join(filepath.Dir(dir), "told"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		os.Exit(1)
	}
	v, err := e.Events(0)
	if err != nil {
		os.Exit(1)
	}
	for buf := make([]byte, MaxEvent); !v.Done(); {
		event, err := v.Next(buf)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if event == nil {
			_ = v.Wait(context.Background())
			continue
		}
		if event.Kind == Log {
			b, _ := json.Marshal(told{event.Seq, event.Stream, len(event.Data), crc32.ChecksumIEEE(event.Data)})
			_, _ = log.Write(append(b, '\n'))
		}
	}
	v.Close()
	s.Close()
}

// TestKilled kills the spooling process again and again. In the end every byte
// must be there once, and no event may have changed.
func TestKilled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "spool")
	s := Open(Config{Dir: dir, Limit: 1 << 30})
	rec := written{Exec: api.Exec{ID: childID, BoxID: childBox, Status: api.ExecRunning, CreatedAt: time.Now()}}
	if err := s.records(childBox).Put(childID, rec, false); err != nil {
		t.Fatal(err)
	}
	var ends, writers [3]*os.File
	for i := range ends {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		ends[i], writers[i] = r, w
	}
	stop := make(chan struct{})
	sent := make(chan [2]int64)
	go func() { sent <- write(writers, stop) }()
	for range kills {
		child := startChild(t, dir, ends)
		// This is long enough to reach any state from its start to full
		// speed.
		time.Sleep(time.Duration(rand.IntN(25_000)) * time.Microsecond)
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	last := startChild(t, dir, ends)
	close(stop)
	for _, r := range ends { // only the child keeps them, so that the writer ends if the child dies
		_ = r.Close()
	}
	want := <-sent
	if err := last.Wait(); err != nil {
		t.Fatal("the last child: ", err)
	}
	compare(t, s, root, want)
}

func startChild(t *testing.T, dir string, ends [3]*os.File) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir)
	child.ExtraFiles = ends[:]
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return child
}

// write writes numbered lines with characters of two bytes to both pipes, in
// pieces that split the characters, until stop. It returns how much it wrote.
func write(to [3]*os.File, stop chan struct{}) (n [2]int64) {
	defer func() {
		for _, w := range to {
			_ = w.Close()
		}
	}()
	buf := make([]byte, 0, 8<<10)
	for {
		select {
		case <-stop:
			return n
		default:
		}
		for s := range n {
			size := 1 + rand.IntN(cap(buf)-1)
			buf = pattern(buf[:0], n[s], size)
			if _, err := to[s].Write(buf); err != nil {
				return n
			}
			n[s] += int64(size)
		}
	}
}

// pattern appends size bytes of the stream that every test writes, starting at
// offset at.
func pattern(b []byte, at int64, size int) []byte {
	const width = 16
	for i := at / width; len(b) < size+width; i++ {
		line := fmt.Sprintf("%010dä€\n", i) // 10+2+3+1 bytes
		if len(b) == 0 {
			line = line[at%width:]
		}
		b = append(b, line...)
	}
	return b[:size]
}

func compare(t *testing.T, s *Store, root string, want [2]int64) {
	t.Helper()
	e, err := s.Get(childBox, childID)
	if err != nil {
		t.Fatal(err)
	}
	if r := e.Record(); *r.StdoutBytes != want[0] || *r.StderrBytes != want[1] {
		t.Errorf("%d and %d bytes, written were %v", *r.StdoutBytes, *r.StderrBytes, want)
	}
	events := map[int64]told{}
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var at [2]int64
	buf := make([]byte, MaxEvent)
	for !v.Done() {
		event, err := v.Next(buf)
		if err != nil || event == nil {
			t.Fatal(event, err)
		}
		if event.Kind != Log {
			continue
		}
		events[event.Seq] = told{event.Seq, event.Stream, len(event.Data), crc32.ChecksumIEEE(event.Data)}
		if string(event.Data) != string(pattern(nil, at[event.Stream], len(event.Data))) {
			t.Fatalf("event %d differs from what was written at %d of stream %d", event.Seq, at[event.Stream], event.Stream)
		}
		at[event.Stream] += int64(len(event.Data))
	}
	if at != want {
		t.Errorf("events have %v bytes, written were %v", at, want)
	}
	log, err := os.ReadFile(filepath.Join(root, "told"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	for _, line := range lines {
		var was told
		if err := json.Unmarshal([]byte(line), &was); err != nil {
			t.Fatal(err)
		}
		if events[was.Seq] != was {
			t.Fatalf("event %d was %+v, is %+v", was.Seq, was, events[was.Seq])
		}
	}
	t.Logf("%v bytes, %d events, %d times told", want, len(events), len(lines))
}
