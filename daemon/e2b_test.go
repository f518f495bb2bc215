package daemon

import (
	"bytes"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestE2B wants a listener of its own for E2B's SDKs, whose address the user is told.
func TestE2B(t *testing.T) {
	forget(t)
	d := launch(t, t.TempDir(), newRuntime(t)(), func(c *Config) { c.E2B = "127.0.0.1:0" })
	places := d.places()
	address, ok := strings.CutSuffix(places[len(places)-1], " (E2B)")
	if !ok {
		t.Fatalf("the places are %v", places)
	}
	answer, err := http.Get(address + "/v2/sandboxes") //nolint:noctx // the test ends with it
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d", answer.StatusCode)
	}
	if without := launch(t, t.TempDir(), newRuntime(t)()); slices.ContainsFunc(without.places(), func(p string) bool { return strings.HasSuffix(p, "(E2B)") }) {
		t.Errorf("it listens unasked: %v", without.places())
	}
}

// TestE2BSecret wants tokens to be valid after a restart.
func TestE2BSecret(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "daemon")
	first, err := e2bSecret(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := e2bSecret(dir)
	if err != nil || !bytes.Equal(first, second) || len(first) != 32 {
		t.Errorf("got %x and %x, %v", first, second, err)
	}
}
