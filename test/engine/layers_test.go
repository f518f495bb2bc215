package engine_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// A layer that the shim has unpacked comes to disk without anybody waiting
// for it, also when the shim dies before.
func TestFlush(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	var b bytes.Buffer
	must(t, tar.NewWriter(&b).Close())
	dir := filepath.Join(home, "layers", "one")
	must(t, os.Mkdir(filepath.Dir(dir), 0o700))
	must(t, e.Unpack(t.Context(), &b, dir))
	must(t, layer.MarkNew(dir))
	must(t, e.Flush(t.Context()))
	boxes.Await(t, "the layer to be on disk", func() bool { return layer.OnDisk(dir) })

	must(t, layer.MarkNew(dir))
	must(t, syscall.Kill(boxes.ShimPID(t, home), syscall.SIGKILL))
	boxes.AwaitState(t, e, newBoxAt(t, e, home, rootfs.Busybox(t)), api.Running) // starts a shim
	boxes.Await(t, "the next shim to see to it", func() bool { return layer.OnDisk(dir) })
}

// No thread of the process that unpacks holds a right but those over files, or
// sees more of the host's files than the layer.
func TestUnpackingHasNoRights(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	must(t, e.Flush(t.Context())) // starts the shim
	dir := filepath.Join(home, "layers", "one")
	must(t, os.Mkdir(filepath.Dir(dir), 0o700))
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- e.Unpack(t.Context(), r, dir) }()
	// More than a pipe and the child's buffer hold: the child is at work.
	content := tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "f", Linkname: strings.Repeat("x", 4<<20)})
	_, err := io.CopyN(w, content, 3<<20)
	must(t, err)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", childOf(t, dir)))
	if err != nil || len(children) != 0 {
		t.Errorf("children %q, %v", children, err)
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", childOf(t, dir)))
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		must(t, err)
		for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t000000008000001b", "CapPrm:\t000000008000001b", "CapBnd:\t000000008000001b"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("%s: no %q in\n%s", task, want, status)
			}
		}
	}
	_, err = io.Copy(w, content)
	must(t, err)
	must(t, w.Close())
	must(t, <-ended)
}

// Who cancels the unpacking of a layer has its directory to itself again when that
// returns, however much the child has still to read.
func TestCanceledUnpackingHasEnded(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	dir := filepath.Join(home, "layers", "one")
	must(t, os.Mkdir(filepath.Dir(dir), 0o700))
	var entries []tar.Header
	for i := range 400 {
		entries = append(entries, tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint("file", i)})
	}
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Unpack(ctx, r, dir) }()
	child := 0
	boxes.Await(t, "a child", func() bool { child = findChild(t, dir); return child != 0 })
	must(t, syscall.Kill(child, syscall.SIGSTOP)) // so that all is still in the pipe
	_, err := io.CopyN(w, tarOf(t, entries...), 400*512)
	must(t, err)
	cancel()
	must(t, w.CloseWithError(context.Canceled))
	select {
	case err = <-ended:
		t.Error("it has returned, and its child is at work")
		must(t, syscall.Kill(child, syscall.SIGCONT))
	case <-time.After(100 * time.Millisecond): // it waits for the child
		must(t, syscall.Kill(child, syscall.SIGCONT))
		err = <-ended
	}
	if gone := syscall.Kill(child, 0); !errors.Is(gone, syscall.ESRCH) {
		t.Errorf("process %d still works in the directory: %v", child, gone)
	}
	if _, there := os.Lstat(dir); !errors.Is(there, os.ErrNotExist) {
		t.Errorf("the directory: %v", there)
	}
	if !fault.Is(err, fault.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

// childOf finds the process whose root is dir.
func childOf(t *testing.T, dir string) int {
	t.Helper()
	pid := findChild(t, dir)
	if pid == 0 {
		t.Fatal("no child is locked into ", dir)
	}
	return pid
}

// findChild returns the process whose root is dir, or 0.
func findChild(t *testing.T, dir string) int {
	t.Helper()
	roots, _ := filepath.Glob("/proc/[0-9]*/root")
	for _, root := range roots {
		if to, err := os.Readlink(root); err == nil && to == dir {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(root)))
			must(t, err)
			return pid
		}
	}
	return 0
}

func newBoxAt(t *testing.T, e core.Engine, home string, layers ...string) string {
	t.Helper()
	o := options.Defaults()
	o.Image, o.AutoRemove = "x", false
	rec, err := e.Create(t.Context(), core.CreateRequest{ID: boxes.NextID(home), Options: o, Image: core.Image{Ref: "x", Layers: layers}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, e.Remove(context.Background(), rec.ID, true)) })
	return rec.ID
}

// A box whose layer the power cut may have damaged does not start on it.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	dir, root := filepath.Join(home, "layers", "one"), rootfs.Busybox(t)
	must(t, os.Mkdir(filepath.Dir(dir), 0o700))
	must(t, os.Rename(root, dir))
	must(t, layer.MarkNew(dir))
	id := newBoxAt(t, e, home, dir)
	_, err := e.Stop(t.Context(), id, time.Second)
	must(t, err)
	must(t, syscall.Kill(boxes.ShimPID(t, home), syscall.SIGKILL))
	must(t, unix.Setxattr(dir, "trusted.sandbox.boot", []byte("earlier"), 0))
	if _, err := e.Start(t.Context(), id); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "pull or import") {
		t.Errorf("%v, want image_error", err)
	}
	taken, _ := filepath.Glob(filepath.Join(home, "layers", "tmp-*"))
	if len(taken) != 1 {
		t.Fatalf("taken away: %v", taken)
	}
	must(t, os.Rename(taken[0], dir)) // as if it were made anew
	if _, err := e.Start(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// As many layers as an image may have, each with a file, and each over one of
// the layer below.
func TestManyLayers(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	layers := []string{rootfs.Busybox(t)}
	for i := 1; i < 128; i++ {
		dir := t.TempDir()
		must(t, os.Chmod(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), nil, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "top"), fmt.Append(nil, i), 0o600))
		layers = append(layers, dir)
	}
	e := boxes.Open(t, home)
	id := newBoxAt(t, e, home, layers...)
	if out, _ := boxes.Output(t, e, id, options.Exec{Cmd: []string{"sh", "-c", "cat /top; ls -d /file* | wc -l"}}); out != "127127\n" {
		t.Errorf("top and number of files: %q", out)
	}
}

// tarOf packs entries; a file's content is its Linkname.
func tarOf(t *testing.T, entries ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		h.Mode = 0o755
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
			h.Size = int64(len(content))
		}
		must(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		must(t, err)
	}
	must(t, w.Close())
	return &b
}

// What an upper layer does to names of a lower one stays within the box: it
// takes a directory's place, writes below a link of the lower layer, hides.
func TestLaterLayers(t *testing.T) {
	t.Parallel()
	file := func(name, text string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: text}
	}
	dir := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name} }
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	home := t.TempDir()
	e := boxes.Open(t, home)
	layers := []string{rootfs.Busybox(t)}
	must(t, os.Mkdir(filepath.Join(home, "layers"), 0o700))
	for i, entries := range [][]tar.Header{
		{dir("d"), file("d/f", "lower"), link("link", "/etc"), link("up", "../../../../etc"), file("x", "lower"), file("full/f", "lower"), file("opaque/f", "lower"), file("twice", "lower")},
		{file("d", "upper"), file("link/passwd", "upper"), file("up/passwd", "upper"), dir("x"), file(".wh.full", ""), file("opaque/.wh..wh..opq", ""), file("twice", "1"), file("twice", "2"), file(".wh.nothing", "")},
	} {
		dir := filepath.Join(home, "layers", fmt.Sprint(i))
		must(t, e.Unpack(t.Context(), tarOf(t, entries...), dir))
		layers = append(layers, dir)
	}
	id := newBoxAt(t, e, home, layers...)
	out, _ := boxes.Output(t, e, id, options.Exec{Cmd: []string{"sh", "-c", `cat /d /link/passwd /up/passwd /twice; echo; head -n 1 /etc/passwd; ls -d /x/ /opaque/* /full /nothing 2>/dev/null`}})
	if want := "upperupperupper2\nroot:x:0:0:root:/root:/bin/sh\n/x/\n"; out != want {
		t.Errorf("the box sees %q, want %q", out, want)
	}
	for name, h := range map[string]tar.Header{
		"a link to a file of the lower layer": {Typeflag: tar.TypeLink, Name: "h", Linkname: "d/f"},
		"a device in its place":               {Typeflag: tar.TypeBlock, Name: "d", Devmajor: 8},
	} {
		dir := filepath.Join(home, "layers", "bad")
		if err := e.Unpack(t.Context(), tarOf(t, h), dir); !fault.Is(err, fault.Image) {
			t.Errorf("%s: %v, want image_error", name, err)
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s: something is left", name)
		}
	}
}
