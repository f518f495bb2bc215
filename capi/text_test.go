package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// cutUp passes text through pieces in reads of the given sizes, and returns
// what comes out, joined.
func cutUp(t *testing.T, input []byte, sizes []byte) string {
	t.Helper()
	var got strings.Builder
	p := newPieces(func(_ bool, text []byte) {
		if len(text) == 0 || !isClean(text) {
			t.Fatalf("piece %q is not clean text", text)
		}
		if text[:len(text)+1][len(text)] != 0 {
			t.Fatalf("no NUL behind %q", text)
		}
		got.Write(text)
	})
	for len(input) > 0 {
		n := len(input)
		if len(sizes) > 0 {
			n, sizes = min(n, 1+int(sizes[0])), sizes[1:]
		}
		p.read(false, copy(p.room(), input[:n]))
		input = input[n:]
	}
	p.flush()
	return got.String()
}

func TestPieces(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, input, want string
		sizes             []byte // each is one less than the size of the read
	}{
		{"plain", "hello\n", "hello\n", nil},
		{"whole characters", "grüße 世界 🦊", "grüße 世界 🦊", nil},
		{"one byte at a time", "ü世🦊", "ü世🦊", make([]byte, 9)},
		{"nul", "a\x00b", "a\ufffdb", nil},
		{"not utf-8", "a\xff\xfeb", "a\ufffd\ufffdb", nil},
		{"unfinished at the end", "a\xf0\x9f", "a\ufffd\ufffd", nil},
		{"broken off by another character", "\xe4\xb8A", "\ufffd\ufffdA", []byte{1}},
		{"stray continuation bytes", "\x80\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd", []byte{0, 0}},
		{"surrogate", "\xed\xa0\x80", "\ufffd\ufffd\ufffd", []byte{0, 0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := cutUp(t, []byte(c.input), c.sizes); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A full read that ends inside a character must not overrun the buffer, and the
// other stream must not change what is left over.
func TestPiecesFullReads(t *testing.T) {
	t.Parallel()
	var got [2]bytes.Buffer
	p := newPieces(func(stderr bool, text []byte) {
		if stderr {
			got[1].Write(text)
			return
		}
		got[0].Write(text)
	})
	want := strings.Repeat("🦊", len(p.room()))
	for rest := []byte(want); len(rest) > 0; {
		n := min(len(rest), len(p.room())-1)
		p.read(false, copy(p.room(), rest[:n]))
		p.read(true, copy(p.room(), "x\xe4"))
		rest = rest[n:]
	}
	p.flush()
	if got[0].String() != want {
		t.Error("standard output was changed")
	}
	if !utf8.Valid(got[1].Bytes()) || !strings.HasPrefix(got[1].String(), "x\ufffdx\ufffd") {
		t.Errorf("standard error is %.20q", got[1].String())
	}
}

// Text that is UTF-8 already is passed on in the buffer that it was read into.
func TestPiecesCopyNothing(t *testing.T) {
	t.Parallel()
	var p *pieces
	p = newPieces(func(_ bool, text []byte) {
		if first := &text[0]; first != &p.buffer[headroom] && first != &p.buffer[headroom-1] {
			t.Error("the text was copied")
		}
	})
	p.read(false, copy(p.room(), "text \xc3"))
	p.read(false, copy(p.room(), "\xbc more"))
}

func FuzzPieces(f *testing.F) {
	f.Add([]byte("a\x00ü世🦊\xff\xf0\x9f"), []byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, input, sizes []byte) {
		want := strings.ReplaceAll(string([]rune(string(input))), "\x00", "\ufffd")
		if got := cutUp(t, input, sizes); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func BenchmarkPieces(b *testing.B) {
	p := newPieces(func(bool, []byte) {})
	n := copy(p.room(), bytes.Repeat([]byte("a line of ordinary output\n"), 1<<12))
	b.SetBytes(int64(n))
	for b.Loop() {
		p.read(false, n)
	}
}
