package api_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"sandbox/api"
)

// same compares IsUTF8 with the standard library.
func same(t *testing.T, p []byte) {
	t.Helper()
	if got, want := api.IsUTF8(p), utf8.Valid(p); got != want {
		t.Errorf("%d bytes %q: %v, want %v", len(p), p, got, want)
	}
}

// TestIsUTF8 puts each wrong and each right sequence at each place of texts of each
// length up to several vectors: a vectorised check fails at their borders, if anywhere.
func TestIsUTF8(t *testing.T) {
	t.Parallel()
	sequences := []string{
		"", "a", "ä", "€", "\U0001F600", "\xff", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", // cut short
		"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", // longer than need be
		"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", // a surrogate, beyond Unicode
	}
	for _, around := range []string{"a", "ж", "語"} {
		for n := range 100 {
			text := bytes.Repeat([]byte(around), n)
			for _, s := range sequences {
				for at := 0; at <= len(text); at += len(around) {
					same(t, append(append(bytes.Clone(text[:at]), s...), text[at:]...))
				}
			}
		}
	}
}

func FuzzIsUTF8(f *testing.F) {
	f.Add([]byte("日本語\xe2\x82"))
	f.Add(bytes.Repeat([]byte("привет"), 20))
	f.Fuzz(same)
}
