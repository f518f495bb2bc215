package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"sandbox/api"
)

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", time.Hour: "1h",
		47 * time.Hour: "47h", 48 * time.Hour: "2d", 1000 * time.Hour: "41d",
	} {
		if got := age(now.Add(-d), now); got != want {
			t.Errorf("age of %v = %q, want %q", d, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 30: "3.0 GiB", 1 << 62: "4194304.0 TiB",
	} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestTableHidesControlCharacters(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := writeTable(&b, []any{"A", "B"}, []any{"a\x1b[2J\n\tb", 1}); err != nil {
		t.Fatal(err)
	}
	if want := "A         B\na?[2J??b  1\n"; b.String() != want {
		t.Errorf("table = %q, want %q", b.String(), want)
	}
}

// Text of others has no character that a terminal obeys.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a:1 é 盒":          "a:1 é 盒",
		"a\x1b[2J\r\n\x7f": "a?[2J???",
		"a\u009b2J\u0085":  "a?2J?",
		"a\x9b2J":          "a\uFFFD2J",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// What a server says of a context, an image, a layer or a connection is printed without
// characters that a terminal obeys.
func TestTextOfServers(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[2J\u009b2J"
	var b bytes.Buffer
	a := &app{Stdio: Stdio{Out: &b}}
	(&tunnels{told: &b}).tell(errors.New(text))
	b.WriteString(bar(api.ImageProgress{Stage: text}))
	err := errors.Join(
		a.printContext(api.CodeContext{ID: text}, nil), a.printContext(api.CodeContext{ID: text, ExecID: "exec"}, nil),
		a.printMade(api.Image{Name: text}), a.printPushed(api.Pushed{Reference: text}),
	)
	if got := b.String(); err != nil || strings.Count(got, "a?[2J?2J") != 6 || strings.ContainsAny(got, "\x1b\u009b") {
		t.Errorf("printed %q, %v", got, err)
	}
}
