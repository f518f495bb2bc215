package image_test

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math/rand"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// mostMemory is the most memory that a pull may use, whatever the size of the
// image.
const mostMemory = 64 << 20

// TestPullMemory pulls an image of 256 MiB in four layers. It is not parallel,
// so that no other test runs at the same time.
func TestPullMemory(t *testing.T) {
	dir := t.TempDir()
	b := twoLayers(t)
	var diffIDs []string
	var layers []any
	for i := range 4 {
		diffID, packed, size := noiseLayer(t, dir, int64(i), 64<<20)
		diffIDs = append(diffIDs, "sha256:"+diffID)
		layers = append(layers, map[string]any{"mediaType": b.types[0], "digest": "sha256:" + packed, "size": size})
	}
	b.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": diffIDs}
	config := marshal(t, b.config)
	manifest := marshal(t, map[string]any{"schemaVersion": 2, "layers": layers, "config": map[string]any{"digest": "sha256:" + digest([]byte(config)), "size": len(config)}})
	h := newHub(t)
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		switch name := path.Base(r.URL.Path); {
		case name == "latest":
			w.Header().Set("Content-Type", ociManifest)
			_, _ = io.WriteString(w, manifest)
		case name == "sha256:"+digest([]byte(config)):
			_, _ = io.WriteString(w, config)
		case strings.HasPrefix(name, "sha256:"):
			http.ServeFile(w, r, filepath.Join(dir, strings.TrimPrefix(name, "sha256:")))
		default:
			return false
		}
		return true
	})
	f := newPuller(t, h.sources())
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil { // resets the peak
		t.Fatal(err)
	}
	idle := resident(t, "VmRSS:")
	info, err := f.Pull(t.Context(), "x", nil)
	if err != nil || info.Size < 256<<20 {
		t.Fatal("needs root: ", info.Size, err)
	}
	if took := resident(t, "VmHWM:") - idle; took > mostMemory {
		t.Errorf("the pull took %d MiB of memory, want at most %d", took>>20, mostMemory>>20)
	} else {
		t.Logf("the pull took %d MiB of memory", took>>20)
	}
}

// noiseLayer writes a compressed layer of one file to dir, under its digest.
func noiseLayer(t testing.TB, dir string, seed, size int64) (diffID, packed string, packedSize int64) {
	t.Helper()
	file, err := os.CreateTemp(dir, "layer")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ofPlain, ofPacked := sha256.New(), sha256.New()
	z, err := gzip.NewWriterLevel(io.MultiWriter(file, ofPacked), gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(io.MultiWriter(z, ofPlain))
	if err := w.WriteHeader(&tar.Header{Name: fmt.Sprint("noise", seed), Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, rand.New(rand.NewSource(seed)), size); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	text := func(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
	if err := os.Rename(file.Name(), filepath.Join(dir, text(ofPacked))); err != nil {
		t.Fatal(err)
	}
	return text(ofPlain), text(ofPacked), st.Size()
}

// resident returns a field of this process's status, in bytes.
func resident(t testing.TB, field string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), field)
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
