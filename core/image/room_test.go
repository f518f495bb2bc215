package image_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/image"
)

// TestRoom has images come in where the disk has no room from the beginning, or none
// once something was written. Nothing of them is left.
func TestRoom(t *testing.T) {
	t.Parallel()
	plain := pack(t, map[string]string{"zeros": string(make([]byte, 40<<20))})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "zeros"), make([]byte, 40<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHub(t)
	b := &built{config: twoLayers(t).config, packed: [][]byte{gz(t, plain)}, types: []string{"application/vnd.oci.image.layer.v1.tar+gzip"}}
	b.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(plain)}}
	h.push(t, "x", "latest", b)
	for what, in := range map[string]func(context.Context, *image.Store) error{
		"a directory": func(ctx context.Context, s *image.Store) error { _, err := s.Import(ctx, "x", dir, nil); return err },
		"a file": func(ctx context.Context, s *image.Store) error {
			_, err := s.Import(ctx, "x", source(t, plain), nil)
			return err
		},
		"a stream": func(ctx context.Context, s *image.Store) error {
			_, err := s.ImportTar(ctx, "x", bytes.NewReader(plain), nil)
			return err
		},
		"a registry": func(ctx context.Context, s *image.Store) error { _, err := s.Pull(ctx, "x", nil); return err },
	} {
		for _, looks := range []int64{0, 2, 100} { // how many find room
			t.Run(fmt.Sprint(what, ", ", looks), func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int64
				f := newPuller(t, h.sources())
				s, err := image.Open(image.Config{Home: f.home, Unpacker: f.u, Sources: h.sources(), Room: func() error {
					if asked.Add(1) > looks {
						return fault.New(fault.Storage, "no room")
					}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				f.Store = s
				err = in(t.Context(), s)
				if looks == 100 && err != nil || looks < 100 && !fault.Is(err, fault.Storage) {
					t.Errorf("%v after %d looks", err, asked.Load())
				}
				if looks < 100 {
					f.nothing(t)
				}
			})
		}
	}
}
