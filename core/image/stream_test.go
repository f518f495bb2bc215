package image

import (
	"crypto/sha256"
	"io"
	"strings"
	"testing"

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
