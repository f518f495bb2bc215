package build

import (
	"testing"
	"unicode/utf8"
)

// Output that comes in pieces of any size is passed on whole, and no piece ends inside a
// character, but for one that never ends.
func TestPieces(t *testing.T) {
	t.Parallel()
	streams := [2]string{"aä€😀 und ", "ошибка 🚧\xf0\x9f"}
	for size := 1; size < 9; size++ {
		var got [2]string
		ended := false
		p := pieces{emit: func(stderr bool, p []byte) error {
			i := 0
			if stderr {
				i = 1
			}
			if len(p) == 0 || !ended && !utf8.Valid(p) {
				t.Errorf("in pieces of %d: %q was passed on", size, p)
			}
			got[i] += string(p)
			return nil
		}}
		rest := streams
		for rest != [2]string{} {
			for i := range rest {
				n := min(size, len(rest[i]))
				if err := p.add(i == 1, []byte(rest[i][:n])); err != nil {
					t.Fatal(err)
				}
				rest[i] = rest[i][n:]
			}
		}
		ended = true
		if err := p.flush(); err != nil || got != streams {
			t.Errorf("in pieces of %d: got %q, %v, want %q", size, got, err, streams)
		}
	}
}
