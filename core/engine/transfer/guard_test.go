package transfer

import (
	"archive/tar"
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "write" {
		fmt.Fprintln(os.Stderr, writeUntilSignal(os.Args[2], os.Args[3]))
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// waiting says that it is read, and gives nothing before the end of standard input.
type waiting struct{}

func (waiting) Read(p []byte) (int, error) {
	fmt.Println("reading")
	return os.Stdin.Read(p)
}

// writeUntilSignal is the body of a process that is ended while it writes a file in dir.
func writeUntilSignal(what, dir string) error {
	if what == "tar" {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		u := unpacker{root: root, at: root, buf: make([]byte, tarBuffer)}
		return u.file(&tar.Header{Mode: 0o644}, "there", waiting{})
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	for range 64 { // files that were written before
		p, err := newPart(fd)
		if err != nil {
			return err
		}
		p.remove()
	}
	if _, err := newPart(fd); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, waiting{})
	return err
}

// SIGTERM, which a box that stops sends, leaves no temporary file: neither one behind
// others of the same process, nor one of a file in a tar that replaces another.
func TestSignalLeavesNoPart(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"parts", "tar"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "there"), []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", "write", what, dir)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = bufio.NewReader(out).ReadString('\n')
		parts, _ := filepath.Glob(filepath.Join(dir, ".sandbox-*"))
		if err != nil || len(parts) != 1 {
			t.Errorf("%s: %v, and there is %q; want one temporary file", what, err, parts)
		}
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it died
		_ = in.Close()
		var left []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		text, readErr := os.ReadFile(filepath.Join(dir, "there"))
		if err != nil || readErr != nil || string(text) != "before" || !slices.Equal(left, []string{"there"}) {
			t.Errorf("%s: left %q, %v, %q, %v", what, left, err, text, readErr)
		}
	}
}
