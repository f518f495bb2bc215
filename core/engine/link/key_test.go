package link_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"

	"sandbox/core/engine/link"
)

// TestKey reads keys that were told, and other texts.
func TestKey(t *testing.T) {
	t.Parallel()
	var lines [2]string
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		var line bytes.Buffer
		if err := link.WriteKey(&line, &key.PublicKey); err != nil {
			t.Fatal(err)
		}
		keys[i], lines[i] = key, line.String()
	}
	for name, text := range map[string]string{
		"alone":        lines[0],
		"before other": lines[0] + lines[1],
		"behind words": "init runtime @0.05 ms\n" + lines[0],
	} {
		if got, err := link.ReadKey(strings.NewReader(text)); err != nil || !got.Equal(&keys[0].PublicKey) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{
		"nothing":        "",
		"no key":         "listening on :7443\n",
		"cut":            lines[0][:40] + "\n",
		"not base64":     "public key !\n",
		"endless line":   strings.Repeat("x", 1<<20),
		"behind a bad":   "public key AAAA\n" + lines[0],
		"inside a line":  "a " + lines[0],
		"of another way": "public key MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n",
	} {
		if got, err := link.ReadKey(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
}
