package daemon_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A server whose disk gets full logs which boxes take most of it.
func TestLowSpace(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	p.events(p.sh(box, "dd if=/dev/zero of=/big bs=1M count=20 2>/dev/null; sync /big"), 0).rest()
	p.kill()
	var st unix.Statfs_t
	must(t, unix.Statfs(p.home, &st))
	free := st.Bavail * uint64(st.Bsize) >> 20
	must(t, os.WriteFile(filepath.Join(p.home, "config.toml"), fmt.Appendf(nil, "disk_floor_mib = %d\n", free*3/4), 0o600))
	lines := p.launch()
	for line := ""; !strings.Contains(line, "disk gets full"); {
		var err error
		line, err = lines.ReadString('\n')
		must(t, err)
		if strings.Contains(line, "disk gets full") && !strings.Contains(line, filepath.Base(box)+" 20 MiB") {
			t.Errorf("got %s", line)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the server
}
