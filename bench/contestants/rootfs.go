package contestants

import (
	"fmt"
	"os"
	"path/filepath"
)

// busybox is the path at which Debian's busybox-static installs it.
const busybox = "/bin/busybox"

// Producer writes as many bytes of text as its argument says (c/text.c).
const Producer = "/bin/text"

// TCPProgram sends and receives bytes (c/tcp.c).
const TCPProgram = "/bin/tcp"

// makeRootfs makes the root file system that all contestants run in: busybox
// and our programs, all static.
func makeRootfs(dir, tools string) error {
	for _, d := range []string{"bin", "dev", "etc", "proc", "root", "sys", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"sh", "echo", "sleep", "cat"} {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil {
			return err
		}
	}
	passwd := filepath.Join(dir, "etc", "passwd")
	if err := os.WriteFile(passwd, []byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644); err != nil {
		return err
	}
	if err := copyProgram(busybox, filepath.Join(dir, "bin", "busybox")); err != nil {
		return fmt.Errorf("%w (apt-get install busybox-static)", err)
	}
	for _, program := range []string{Producer, TCPProgram} {
		if err := copyProgram(filepath.Join(tools, filepath.Base(program)), filepath.Join(dir, program)); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
