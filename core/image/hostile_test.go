package image_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sandbox/core/fault"
)

// header returns a tar that ends after one header.
func header(t testing.TB, h tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHostileLayers pulls images of which one layer is hostile, with the
// hostile layer at each position.
func TestHostileLayers(t *testing.T) {
	t.Parallel()
	end := make([]byte, 1024)
	through := append(header(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}), header(t, tar.Header{Name: "l/passwd"})...)
	for name, c := range map[string]struct {
		tar  []byte
		want string
	}{
		"dot dot":       {header(t, tar.Header{Name: "../f"}), "with .. in it"},
		"absolute":      {header(t, tar.Header{Name: "/f"}), "absolute"},
		"through links": {through, "out of the layer"},
		"hard link out": {header(t, tar.Header{Typeflag: tar.TypeLink, Name: "f", Linkname: "../../../etc/passwd"}), "with .. in it"},
		"device":        {header(t, tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}), "a device"},
		"giant file":    {header(t, tar.Header{Name: "f", Size: 1 << 40}), "too much"},
		"owner":         {header(t, tar.Header{Name: "f", Uid: 1 << 20}), "owner 1048576:0"},
		"whiteout":      {header(t, tar.Header{Name: "a/.wh..."}), "whiteout that names no file"},
	} {
		for _, position := range []int{0, 1, 2} {
			t.Run(fmt.Sprint(name, " in layer ", position+1), func(t *testing.T) {
				t.Parallel()
				b := &built{config: twoLayers(t).config}
				var diffIDs []string
				for i := range 3 {
					plain := pack(t, map[string]string{fmt.Sprint("f", i): "x"})
					if i == position {
						plain = append(c.tar[:len(c.tar):len(c.tar)], end...)
					}
					b.packed, b.types = append(b.packed, gz(t, plain)), append(b.types, "application/vnd.oci.image.layer.v1.tar+gzip")
					diffIDs = append(diffIDs, "sha256:"+digest(plain))
				}
				b.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": diffIDs}
				h := newHub(t)
				h.push(t, "x", "latest", b)
				f := newPuller(t, h.sources())
				if _, err := f.Pull(t.Context(), "x", nil); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want image_error with %q", err, c.want)
				}
				f.nothing(t)
			})
		}
	}
}

// nothing fails the test if an image is known or anything half made is left.
func (f *fixture) nothing(t testing.TB) {
	t.Helper()
	if all, err := f.List(); len(all) != 0 || err != nil {
		t.Errorf("images: %v, %v", all, err)
	}
	nothingHalf(t, f)
}

// TestGiantWindow imports a zstd frame that asks for more memory than the
// limit.
func TestGiantWindow(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(512<<20))
	if err != nil {
		t.Fatal(err)
	}
	plain := pack(t, map[string]string{"f": strings.Repeat("text", 1000)})
	for _, part := range [][]byte{plain[:1024], plain[1024:]} { // written in parts, or else the frame would state its small size
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	if _, err := f.Import(t.Context(), "x", source(t, b.Bytes()), nil); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "window") {
		t.Errorf("%v, want image_error that names the window", err)
	}
	f.nothing(t)
}

// TestOtherMachine pulls an image whose config, and an index whose thousands of
// entries, are for other machines.
func TestOtherMachine(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := twoLayers(t)
	b.config["architecture"] = "s390x"
	h.push(t, "x", "config", b)
	var entries []any
	for i := range 15_000 {
		entries = append(entries, map[string]any{"mediaType": ociManifest, "size": 1, "digest": "sha256:" + digest(fmt.Append(nil, i)), "platform": map[string]any{"os": "linux", "architecture": "s390x"}})
	}
	giant := marshal(t, map[string]any{"schemaVersion": 2, "manifests": entries})
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/manifests/index") {
			return false
		}
		w.Header().Set("Content-Type", ociIndex)
		_, _ = io.WriteString(w, giant)
		return true
	})
	f := newPuller(t, h.sources())
	for _, tag := range []string{"config", "index"} {
		if _, err := f.Pull(t.Context(), "x:"+tag, nil); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "linux/s390x") || len(err.Error()) > 1000 {
			t.Errorf("%s: %v, want image_error that names the machine", tag, err)
		}
	}
	if h.count("/blobs/") != 1 {
		t.Errorf("%d blobs were fetched, want the config", h.count("/blobs/"))
	}
	f.nothing(t)
}
