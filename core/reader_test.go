package core

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"sandbox/api"
)

// exited is the engine's side of a command that has ended.
type exited struct {
	Control
	fd int
}

func (x exited) ExitFD() int                   { return x.fd }
func (x exited) Exit() (api.ExitStatus, error) { return api.ExitStatus{ExitCode: 7}, nil }

// A command's pipes may end after its exit is known. The reader then ends with the
// last of them, and does not wait until the time for background children is over.
func TestReaderEndsWithLastPipe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var read, write [3]*os.File // stdout, stderr, the exit
	for i := range read {
		var err error
		if read[i], write[i], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
		defer read[i].Close()
	}
	e := &Exec{p: &Process{Stdout: read[0], Stderr: read[1], Streams: &Streams{}, Control: exited{fd: int(read[2].Fd())}}}
	r, err := e.Reader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.ended(); err != nil {
		t.Fatal(err)
	}
	r.deadline = time.Now().Add(time.Hour)
	for _, w := range write {
		_ = w.Close()
	}
	if _, _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || ctx.Err() != nil || r.Status().ExitCode != 7 {
		t.Errorf("got %v, exit code %d, want the end at once", err, r.Status().ExitCode)
	}
}
