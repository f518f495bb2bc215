package cursor_test

import (
	"testing"
	"time"

	"sandbox/httpd/cursor"
)

func TestParse(t *testing.T) {
	t.Parallel()
	want := cursor.Place{At: time.Unix(5, 7), ID: "box_a.b"}
	if got, ok := cursor.Parse(want.String()); !ok || !got.At.Equal(want.At) || got.ID != want.ID {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := cursor.Parse(""); !ok || got != (cursor.Place{}) {
		t.Errorf("no token: %v, %v", got, ok)
	}
	for _, token := range []string{"..", "eA", "IS5h", want.String() + "=", want.String()[1:], cursor.Place{At: want.At}.String()} {
		if got, ok := cursor.Parse(token); ok {
			t.Errorf("%q: %v", token, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(cursor.Place{At: time.Unix(5, 7), ID: "a"}.String())
	f.Fuzz(func(t *testing.T, token string) {
		if p, ok := cursor.Parse(token); ok && token != "" {
			if again, ok := cursor.Parse(p.String()); !ok || again.ID != p.ID || !again.At.Equal(p.At) {
				t.Errorf("%q: %v, then %v", token, p, again)
			}
		}
	})
}
