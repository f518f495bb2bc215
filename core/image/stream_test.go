package image

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sandbox/core/fault"
)

// TestBombs checks streams that have come to a size which a real bomb would
// take long to reach.
func TestBombs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, packed int64
		ok           bool
	}{
		"small, however packed": {100 << 20, 100, true},
		"big, packed well":      {10 << 30, 1 << 30, true},
		"a bomb":                {freeStream, freeStream / 1000, false},
		"endless":               {maxStream, maxStream, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stream{plain: strings.NewReader(strings.Repeat("x", 1000)), size: c.size, raw: &meter{}, sum: sha256.New()}
			s.raw.n.Store(c.packed)
			_, err := io.Copy(io.Discard, &s)
			if c.ok && err != nil || !c.ok && !fault.Is(err, fault.Image) {
				t.Errorf("%v, want it to pass: %v", err, c.ok)
			}
			if cause := s.cause(io.ErrClosedPipe); !c.ok && !fault.Is(cause, fault.Image) {
				t.Errorf("cause %v, want the bomb", cause)
			}
		})
	}
}

// FuzzZstd wants a damaged frame to be refused, and an endless one to end.
func FuzzZstd(f *testing.F) {
	for _, plain := range []string{"", "plain", strings.Repeat("x", 100_000)} {
		z, err := zstd.NewWriter(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(z.EncodeAll([]byte(plain), nil))
	}
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\xff\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		r, end, err := openZstd(bytes.NewReader(packed))
		if err != nil {
			if !fault.Is(err, fault.Image) {
				t.Error(err)
			}
			return
		}
		defer end()
		_, _ = io.Copy(io.Discard, io.LimitReader(r, 64<<20)) // the store says what the failure means
	})
}
