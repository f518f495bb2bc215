package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestPositionOfSource wants the position of a source's file to be left alone by all
// that reads the file. A decompressor reads ahead in goroutines of its own: with one
// position for all, it took bytes from the next reader, and an archive of an image
// was imported as a root file system.
func TestPositionOfSource(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s, err := Open(Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.layers.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	var source bytes.Buffer
	z, err := zstd.NewWriter(&source)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: indexFile, Mode: 0o644}); err != nil { // may be an image, but is none
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(home, "source")
	if err := os.WriteFile(name, source.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.openTar(t.Context(), f, int64(source.Len()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range 2 {
		layer, err := c.layers[0].open(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(layer); err != nil || !bytes.Equal(got, source.Bytes()) {
			t.Errorf("the layer has %d bytes, want %d: %v", len(got), source.Len(), err)
		}
		if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != 0 {
			t.Errorf("the position is %d: %v", at, err)
		}
	}
}
