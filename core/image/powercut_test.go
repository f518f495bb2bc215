package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/image/layer"
)

// cutPower leaves a home as a power cut would: layers that were not on disk
// belong to an earlier boot, and their files may have lost their contents.
func (f *fixture) cutPower(t testing.TB) {
	t.Helper()
	for _, dir := range f.layers(t) {
		if layer.OnDisk(dir) {
			continue
		}
		if err := unix.Setxattr(dir, "trusted.sandbox.boot", []byte("earlier"), 0); err != nil {
			t.Fatal("needs root: ", err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, file := range files {
			if st, err := os.Lstat(file); err != nil || !st.Mode().IsRegular() {
				continue
			}
			if err := os.Truncate(file, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPowerCutAfterImport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	from := source(t, pack(t, map[string]string{"f": "1"}))
	f.imported(t, "x", from)
	if f.u.flushes.Load() != 1 {
		t.Errorf("asked %d times to write to disk, want once", f.u.flushes.Load())
	}
	f.cutPower(t)
	if _, err := f.Resolve(t.Context(), "x"); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "lacks a layer") {
		t.Errorf("%v, want image_error", err)
	}
	f.imported(t, "x", from)
	if f.read(t, "x", "f") != "1" || f.u.calls.Load() != 2 {
		t.Errorf("unpacked %d times, want anew", f.u.calls.Load())
	}
	if err := layer.Flush(filepath.Join(f.home, "layers")); err != nil {
		t.Fatal(err)
	}
	f.cutPower(t)
	if f.read(t, "x", "f") != "1" {
		t.Error("what was on disk has gone")
	}
	if f.imported(t, "x", from); f.u.flushes.Load() != 2 {
		t.Errorf("asked %d times to write to disk, want not again", f.u.flushes.Load())
	}
	nothingHalf(t, f)
}

// TestPowerCutAfterPull checks that a damaged image is pulled again when it is
// needed, and that an imported image is never replaced by a registry's image of
// that name.
func TestPowerCutAfterPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.push(t, "x", "latest", twoLayers(t))
	f := newPuller(t, h.sources())
	if _, err := f.Pull(t.Context(), "x", nil); err != nil {
		t.Fatal("needs root: ", err)
	}
	f.cutPower(t)
	if f.read(t, "x", "both") != "upper" || h.count("/manifests/") != 2 {
		t.Errorf("the manifest was fetched %d times, want it again", h.count("/manifests/"))
	}
	if _, err := f.Prune(t.Context(), false); err != nil || len(f.layers(t)) != 2 {
		t.Errorf("%v, left %v", err, f.layers(t))
	}
	nothingHalf(t, f)
	f.cutPower(t)
	never, err := image.Open(image.Config{Home: f.home, Unpacker: f.u, Sources: image.Sources{Registries: h.sources().Registries, Never: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := never.Resolve(t.Context(), "x"); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "lacks a layer") {
		t.Errorf("%v, want image_error", err)
	}
	f.imported(t, "x", source(t, pack(t, map[string]string{"f": "mine"})))
	before := h.count("/")
	f.cutPower(t)
	if _, err := f.Resolve(t.Context(), "x"); !fault.Is(err, fault.Image) || h.count("/") != before {
		t.Errorf("%v after %d requests, want image_error and none", err, h.count("/")-before)
	}
}

// TestPowerCutWhilePulling leaves half a blob, half a layer and half a record.
// The next pull must remove old remains.
func TestPowerCutWhilePulling(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b, big := oneBigLayer(t)
	h.push(t, "x", "latest", b)
	f := newPuller(t, h.sources())
	half := filepath.Join(f.home, "layers", "tmp-"+digest(b.plain[0]))
	old := filepath.Join(f.home, "blobs", "partial-"+digest(nil))
	for name, data := range map[string][]byte{
		filepath.Join(half, "noise"): big[:1000], half + ".lock": nil,
		filepath.Join(f.home, "images", ".tmp-1"):               []byte("{"),
		filepath.Join(f.home, "blobs", "partial-"+digest(big)):  make([]byte, len(big)), // the size reached the disk, the bytes did not
		filepath.Join(f.home, "layers", ".tmp-1"):               []byte("{"),
		filepath.Join(f.home, "layers", digest(nil), "damaged"): nil,
		old: big[:1000],
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Pull(t.Context(), "x", nil); err != nil {
		t.Fatal("needs root: ", err)
	}
	if got := f.read(t, "x", "noise"); len(got) != 300_000 {
		t.Errorf("the file has %d bytes", len(got))
	}
	nothingHalf(t, f)
	for _, pattern := range []string{"images/.tmp-*", "layers/.tmp-*", "layers/" + digest(nil)} {
		if left, _ := filepath.Glob(filepath.Join(f.home, pattern)); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}
