package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/filelock"
)

// inChild is set in a child process of a test: it names the file to lock, and
// "-" is none. The child says when it is ready, and ends with its input.
const inChild = "FILELOCK_TEST_CHILD"

func TestMain(m *testing.M) {
	path := os.Getenv(inChild)
	if path == "" {
		os.Exit(m.Run())
	}
	if path != "-" {
		if _, err := filelock.Exclusive(context.Background(), path); err != nil {
			panic(err)
		}
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// child starts a child that locks path and has files too. end ends it.
func child(t *testing.T, path string, files ...*os.File) (p *os.Process, end func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), inChild+"="+path), files
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("child said %q (%v)", line, err)
	}
	return cmd.Process, end
}

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "lock") }

// free takes and closes the lock.
func free(t *testing.T, path string) {
	t.Helper()
	f, err := filelock.Try(path)
	if err != nil {
		t.Fatal("the lock is not free:", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func held(t *testing.T, path string) {
	t.Helper()
	if _, err := filelock.Try(path); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("the lock is not held: %v", err)
	}
}

func TestSharedAndExclusive(t *testing.T) {
	t.Parallel()
	path := path(t)
	a, err1 := filelock.Shared(t.Context(), path)
	b, err2 := filelock.Shared(t.Context(), path)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	held(t, path)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	held(t, path)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	alone, err := filelock.Exclusive(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err := filelock.Shared(ctx, path); !fault.Is(err, fault.Timeout) {
		t.Errorf("shared beside exclusive: %v", err)
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
	free(t, path)
}

// TestOtherProcess waits for the lock of another process: until ctx ends, and
// until that process is killed. The wait that was given up holds nothing.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	path := path(t)
	holder, _ := child(t, path)
	held(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := filelock.Exclusive(ctx, path)
		got <- err
	}()
	cancel()
	if err := <-got; !fault.Is(err, fault.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	if err := holder.Kill(); err != nil {
		t.Fatal(err)
	}
	f, err := filelock.Exclusive(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	held(t, path)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestGivenUp gives many waits up while another process holds the lock: they
// leave one goroutine for all, which ends with that process and holds nothing.
// It does not run beside other tests, whose waits it would count.
func TestGivenUp(t *testing.T) {
	path := path(t)
	_, end := child(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	var waits sync.WaitGroup
	for range 20 {
		waits.Go(func() {
			if _, err := filelock.Exclusive(ctx, path); !fault.Is(err, fault.Canceled) {
				t.Errorf("%v, want canceled", err)
			}
		})
	}
	for stacks("filelock.Exclusive(", "[select") < 20 || stacks("filelock.flock(") < 1 {
		runtime.Gosched()
	}
	cancel()
	waits.Wait()
	if n := stacks(served); n != 1 {
		t.Errorf("%d goroutines wait for the lock, want 1", n)
	}
	end()
	for stacks(served) > 0 { // the lock is let go behind the wait for it
		runtime.Gosched()
	}
	free(t, path)
}

// served is in the stack of a goroutine that waits for a line, from its start to its end.
const served = "created by sandbox/core/filelock.line.join"

// stacks returns how many goroutines there are whose stack has all words.
func stacks(words ...string) (n int) {
	all := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		lacks := func(word string) bool { return !strings.Contains(stack, word) }
		if !slices.ContainsFunc(words, lacks) {
			n++
		}
	}
	return n
}

// TestStartingChild unlocks although a child has the descriptor, as one does
// that is being started.
func TestStartingChild(t *testing.T) {
	t.Parallel()
	path := path(t)
	f, err := filelock.Exclusive(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	child(t, "-", f.File)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	free(t, path)
}

// TestHandedOver passes a lock to a child: it ends with the child. So does one
// whose holder was killed while it started a child.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	path := path(t)
	f, err := filelock.Exclusive(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, end := child(t, "-", f.File)
	if err := f.File.Close(); err != nil {
		t.Error(err)
	}
	held(t, path)
	end()
	free(t, path)
}

// TestRemoved has holders that remove the file: at each time one alone holds
// the lock of the file that has the name.
func TestRemoved(t *testing.T) {
	t.Parallel()
	path := path(t)
	var inside sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				f, err := filelock.Exclusive(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if !inside.TryLock() {
					t.Error("two hold the lock")
				} else {
					mine, err1 := f.Stat()
					there, err2 := os.Stat(path)
					if err := errors.Join(err1, err2); err != nil || !os.SameFile(mine, there) {
						t.Error("it holds the lock of another file:", err)
					}
					inside.Unlock()
				}
				if err := errors.Join(os.Remove(path), f.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestOpened(t *testing.T) {
	t.Parallel()
	path := path(t)
	f, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x (%v): programs that are started get it", flags, err)
	}
	if st, err := f.Stat(); err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v (%v)", st.Mode(), err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Try(link); !errors.Is(err, unix.ELOOP) {
		t.Errorf("through a link: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	none := path + "2"
	if _, err := filelock.Exclusive(ctx, none); !fault.Is(err, fault.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := os.Lstat(none); err == nil {
		t.Error("after the end it made a file")
	}
}
