package transfer

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A signal ends a write that waits for room in a pipe early, and a full disk one that
// begins before its end: what is written by hand goes on behind it, or says why it can't.
func TestShortWrite(t *testing.T) { // not parallel: it gets SIGUSR1
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1)
	defer signal.Stop(signals)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 512)
	for name, tt := range map[string]struct {
		rest func(r *os.File) ([]byte, error) // what the reader does behind the first half
		want int64
		err  error
	}{
		"the reader reads on": {func(r *os.File) ([]byte, error) { return io.ReadAll(r) }, int64(len(sent)), nil},
		"the reader has gone": {func(r *os.File) ([]byte, error) { return nil, r.Close() }, int64(len(sent)) / 2, unix.EPIPE},
	} {
		source := filled(t, sent)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, len(sent)/2); err != nil {
			t.Fatal(err)
		}
		thread := make(chan int, 1)
		moved := make(chan error, 1)
		var n int64
		go func() {
			runtime.LockOSThread() // and end with it
			thread <- unix.Gettid()
			var err error
			n, err = moveByHand(int(w.Fd()), source, -1)
			_ = w.Close()
			moved <- err
		}()
		tid := <-thread
		awaitFull(t, r, len(sent)/2)
		if err := unix.Tgkill(os.Getpid(), tid, unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		<-signals // the thread has left the write
		got, err := tt.rest(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-moved; !errors.Is(err, tt.err) || n != tt.want || got != nil && !bytes.Equal(got, sent) {
			t.Errorf("%s: moved %d bytes, %v, and %d were read; want %d, %v", name, n, err, len(got), tt.want, tt.err)
		}
	}
}

// filled returns a descriptor of a file with the content given.
func filled(t *testing.T, content []byte) int {
	fd, err := unix.MemfdCreate("source", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.Pwrite(fd, content, 0); err != nil {
		t.Fatal(err)
	}
	return fd
}

// awaitFull waits until a pipe has n bytes, which is all that it takes.
func awaitFull(t *testing.T, r *os.File, n int) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, 20_000); err == nil {
			break
		} else if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	// The one who writes keeps the pipe until it is full, and this waits for it.
	if has, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ); err != nil || has != n {
		t.Fatalf("the pipe has %d bytes, %v; want %d", has, err, n)
	}
}
