package spool

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unicode/utf8"
)

func diskUse(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// TestRenew reads an index that another process adds to and drops from meanwhile, as
// often as it can beside writing the output.
func TestRenew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	var written index
	defer func() { written.close() }()
	name := filepath.Join(dir, "exec.index")
	event := make([]byte, MaxEvent)
	write := func() error {
		_, err := output.WriteAt(event, 0)
		last := mark{written.last[Stdout] + MaxEvent}
		err = errors.Join(err, written.add(name, []mark{last}))
		err = errors.Join(err, written.drop(written.n, last))
		punch(written.f, markSize+1, written.n*markSize, page)
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := write(); err != nil {
				ended <- err
				return
			}
		}
	}()
	var x index
	defer func() { x.close() }()
	for range 20000 {
		if err := x.renew(name); err != nil {
			t.Error(err)
			break
		}
		if want := (mark{x.dropped * MaxEvent}); x.base != want {
			t.Errorf("%d events are dropped, and the next begins at %d, want %d", x.dropped, x.base, want)
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// FuzzIndex reads arbitrary bytes as the index of some output. The events that
// come out must be complete, in order and inside the output, and so must those
// that are added afterwards.
func FuzzIndex(f *testing.F) {
	head := func(dropped uint64, marks ...mark) []byte {
		b := binary.LittleEndian.AppendUint64([]byte(magic), dropped)
		for _, m := range marks {
			b = m.append(b)
		}
		return b
	}
	f.Add([]byte{}, []byte("out"), []byte("err"))
	f.Add(head(0, mark{3, 0}, mark{3, 3}), []byte("outä"), []byte("err\xc3"))
	f.Add(head(1, mark{3, 0}, mark{3, 3}), []byte("out"), []byte("err"))
	f.Add(head(9, mark{3, 0}), []byte("out"), []byte("err"))
	f.Add(head(0, mark{3, 0}, mark{2, 0}, mark{9, 9}), []byte("out"), []byte("err"))
	f.Add(append(head(0, mark{3, 0}), 1, 2, 3), []byte("outout"), []byte(""))
	f.Add(head(1<<63, mark{-1, 1 << 62}), []byte("out"), []byte("err"))
	f.Fuzz(func(t *testing.T, bytes, stdout, stderr []byte) {
		base := filepath.Join(t.TempDir(), "exec")
		for suffix, b := range map[string][]byte{".index": bytes, ".stdout": stdout, ".stderr": stderr} {
			if err := os.WriteFile(base+suffix, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e := &Exec{s: Open(Config{Dir: filepath.Dir(base)}), room: make(chan struct{}, 1)}
		e.out.base = base
		if e.mend() != nil {
			return
		}
		e.ended = true
		v, err := e.Events(0)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		var at [2]int64
		streams := [2][]byte{stdout, stderr}
		buf := make([]byte, MaxEvent)
		for !v.Done() {
			event, err := v.Next(buf)
			if err != nil {
				t.Fatal(err)
			}
			if event == nil {
				break
			}
			switch event.Kind {
			case Gap:
				at = e.out.index.base
			case Log:
				s := event.Stream
				if got, want := string(event.Data), string(streams[s][at[s]:at[s]+int64(len(event.Data))]); got != want {
					t.Fatalf("event %d is %q, want %q", event.Seq, got, want)
				}
				at[s] += int64(len(event.Data))
			}
		}
		for s := range at {
			if rest := streams[s][at[s]:]; len(rest) > utf8.UTFMax-1 {
				t.Errorf("stream %d: %d bytes are in no event", s, len(rest))
			}
		}
	})
}
