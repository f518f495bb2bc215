package backend

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/fault"
)

// TestNoDaemon: the message says whether a socket is there, and whose it is.
func TestNoDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(socket, 0o600); err != nil {
		t.Fatal(err)
	}
	unseen := filepath.Join(dir, "gone")
	for _, c := range []struct {
		closed string
		want   string
	}{
		{"", "no daemon listens on " + unseen + " or " + socket},
		{socket, "the socket " + socket + " exists, but it belongs to "},
		{socket, "(mode 0600)"},
		{unseen, "the socket " + unseen + " can't be reached: its directory belongs to "},
	} {
		err := noDaemon([]string{unseen, socket}, func(s string) bool { return s == c.closed })
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("closed %q: %v; want %q", c.closed, err, c.want)
		}
	}
}

// TestHomes: root's daemon is looked for, unless a home is named.
func TestHomes(t *testing.T) {
	t.Setenv("SANDBOX_HOME", "/srv/home")
	if got, err := new(Target).homes(); err != nil || len(got) != 1 || got[0] != "/srv/home" {
		t.Errorf("homes() = %q, %v", got, err)
	}
	t.Setenv("SANDBOX_HOME", "")
	if got, err := new(Target).homes(); err != nil || got[len(got)-1] != rootHome {
		t.Errorf("homes() = %q, %v", got, err)
	}
}
