package attack_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

func upload(t *testing.T, b *boxes.Box, u core.Upload, content io.Reader) (api.Uploaded, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return b.Engine.Upload(ctx, b.ID, u, content)
}

// download opens a file until the test ends.
func download(t *testing.T, b *boxes.Box, path string, asTar bool) (*core.Download, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	d, err := b.Engine.Download(ctx, b.ID, options.Download{Path: path, Tar: asTar})
	if err == nil {
		t.Cleanup(func() { _ = d.Close() })
	}
	return d, err
}

// Links that a box plants lead nowhere but to what its root has.
func TestFilesLinks(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, `cd /tmp; for to in self/root 1/root 1/cwd 1/exe self/exe self/fd/0; do ln -s /proc/$to "$(echo $to | tr / -)"; done
		ln -s /../../../../../../etc/passwd up; ln -s a b; ln -s b a; mkfifo fifo`)
	for _, path := range []string{
		"/tmp/self-root/etc/passwd", "/tmp/1-root/etc/passwd", "/tmp/1-cwd/etc/passwd", "/tmp/1-exe", "/tmp/self-exe", "/tmp/self-fd-0",
		"/proc/1/root/etc/passwd", "/proc/self/fd/1", "/proc/kcore", "/proc/kmsg", "/sys/kernel/notes", "/tmp/a", "/tmp/fifo", "/dev/zero", "/dev/pts/ptmx",
	} {
		for _, asTar := range []bool{false, true} {
			_, err := download(t, b, path, asTar)
			if !fault.Is(err, fault.InvalidArgument) && !fault.Is(err, fault.FileNotFound) {
				t.Errorf("download of %s: %v", path, err)
			}
		}
		for _, dest := range []string{path, path + "/new"} {
			_, err := upload(t, b, core.Upload{Dest: dest}, strings.NewReader("x"))
			if err == nil && !strings.HasPrefix(dest, "/tmp/") || err != nil && !fault.Is(err, fault.InvalidArgument) && !fault.Is(err, fault.Storage) {
				t.Errorf("upload to %s: %v", dest, err)
			}
		}
	}
	d, err := download(t, b, "/tmp/up", false)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(d); err != nil || string(text) != b.Sh(t, "cat /etc/passwd") {
		t.Errorf("up and up is the box's own: %q, %v", text, err)
	}
	b.Lives(t)
}

// No entry of a tar leaves the directory that it is for.
func TestFilesTarEscapes(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "mkdir /tmp/in /tmp/out; echo kept >/tmp/out/file; mkfifo /tmp/in/fifo; mkdir /tmp/in/directory; ln -s /tmp/out /tmp/in/there")
	link := func(kind byte, name, to string) tar.Header {
		return tar.Header{Typeflag: kind, Name: name, Linkname: to}
	}
	file := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 4}
	}
	for name, headers := range map[string][]tar.Header{
		"up":                 {file("../out/file")},
		"absolute":           {file("/tmp/out/file")},
		"by a link":          {link(tar.TypeSymlink, "l", "../out"), file("l/file")},
		"by an absolute one": {link(tar.TypeSymlink, "m", "/tmp/out"), file("m/file")},
		"by one of the box":  {file("there/file")},
		"a hard link":        {link(tar.TypeLink, "h", "../out/file"), file("h")},
		"a device":           {{Typeflag: tar.TypeChar, Name: "zero", Devmajor: 1, Devminor: 5}},
		"over a FIFO":        {file("fifo")},
		"over a directory":   {file("directory")},
		"up in the middle":   {file("directory/../../out/file")},
	} {
		var tarred bytes.Buffer
		w := tar.NewWriter(&tarred)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				_, _ = w.Write([]byte("evil"))
			}
		}
		_ = w.Close()
		_, err := upload(t, b, core.Upload{Dest: "/tmp/in", Tar: true}, &tarred)
		if !fault.Is(err, fault.InvalidArgument) && !fault.Is(err, fault.IsDirectory) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := b.Sh(t, "cat /tmp/out/*; ls /tmp/out; find /tmp -name '.sandbox*'"); got != "kept\nfile\n" {
		t.Errorf("outside the directory: %q", got)
	}
}

// Of a file that grows while it is sent as much comes as was announced; one
// that shrinks is a failure.
func TestFilesChange(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	const size = 32 << 20
	for change, whole := range map[string]bool{"echo more >>": true, "truncate -s 9000000": false, "rm": true} {
		b.Sh(t, "head -c 33554432 /dev/zero >/tmp/file")
		d, err := download(t, b, "/tmp/file", false)
		if err != nil || d.Size != size || d.Name != "file" {
			t.Fatal(d, err)
		}
		b.Sh(t, change+" /tmp/file")
		n, err := io.Copy(io.Discard, d)
		if whole && (n != size || err != nil) || !whole && (n >= size || !fault.Is(err, fault.InvalidArgument)) {
			t.Errorf("%s: %d bytes, %v", change, n, err)
		}
	}
}

// A file of holes is as large as it says, and can be left at any time.
func TestFilesSparse(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "truncate -s 1099511627776 /tmp/sparse || truncate -s 1T /tmp/sparse")
	d, err := download(t, b, "/tmp/sparse", false)
	if err != nil || d.Size != 1<<40 {
		t.Fatal(d, err)
	}
	if _, err := io.CopyN(io.Discard, d, 64<<20); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	boxes.Await(t, "the child to end", func() bool { return pids(t, b.Slot(t)) <= 1 })
	if _, err := d.Read(make([]byte, 1)); err == nil {
		t.Error("a closed download is read")
	}
}

// Memory on neither side grows with a file.
func TestFilesMemory(t *testing.T) {
	t.Parallel()
	const size = 256 << 20
	// A quarter of the file: where the kernel's limits (cgroup v1) don't slow
	// down who fills the page cache, a much smaller box can be out of memory
	// while the disk is busy.
	b := boxes.New(t, func(o *options.Box) { o.MemoryMiB = size >> 22 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done, err := upload(t, b, core.Upload{Dest: "/tmp/large"}, io.LimitReader(zeros{}, size))
	if err != nil || done.Size != size {
		t.Fatal(done, err)
	}
	d, err := download(t, b, "/tmp/large", false)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, d); err != nil || n != size {
		t.Error(n, err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > size/4 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if _, s := b.Output(t, options.Exec{Cmd: []string{"true"}}); s.Status != api.ExecSucceeded {
		t.Errorf("afterwards: %+v", s)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A full disk is said to be one, and nothing is left on it.
func TestFilesDiskFull(t *testing.T) {
	t.Parallel()
	volume := filepath.Join(t.TempDir(), "one")
	if err := os.WriteFile(volume, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := boxes.New(t, func(o *options.Box) {
		o.Volumes = []options.Volume{{HostPath: volume, GuestPath: "/mounted"}, {HostPath: t.TempDir(), GuestPath: "/fixed", ReadOnly: true}}
	})
	before := b.Sh(t, "ls -A /dev")
	_, err := upload(t, b, core.Upload{Dest: "/dev/large"}, io.LimitReader(zeros{}, 1<<30))
	if !fault.Is(err, fault.Storage) {
		t.Errorf("full: %v", err)
	}
	if after := b.Sh(t, "ls -A /dev"); after != before {
		t.Errorf("left %q, there was %q", after, before)
	}
	_, err = upload(t, b, core.Upload{Dest: "/fixed/file"}, strings.NewReader("x"))
	if !fault.Is(err, fault.Storage) {
		t.Errorf("read-only: %v", err)
	}
	_, err = upload(t, b, core.Upload{Dest: "/mounted"}, strings.NewReader("x"))
	if !fault.Is(err, fault.InvalidArgument) {
		t.Errorf("a mount point: %v", err)
	}
}

// A stop in the middle of an upload ends it; nothing is left of it.
func TestFilesStop(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := b.Engine.Upload(t.Context(), b.ID, core.Upload{Dest: "/tmp/file"}, r)
		_ = r.CloseWithError(errors.New("no more"))
		ended <- err
	}()
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if list, err := b.Engine.Execs(t.Context(), b.ID); err != nil || len(list) != 0 {
		t.Errorf("a transfer is listed: %v, %v", list, err)
	}
	if _, err := b.Engine.Stop(t.Context(), b.ID, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			break
		}
	}
	wantEngine(t, "upload", <-ended)
	if _, err := b.Engine.Start(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if left := b.Sh(t, "ls -A /tmp"); left != "" {
		t.Errorf("left %q", left)
	}
}
