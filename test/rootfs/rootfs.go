// Package rootfs makes small root file systems for tests.
package rootfs

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// busybox is where Debian's busybox-static puts its program.
const busybox = "/bin/busybox"

// Busybox makes a root file system of Debian's busybox-static in a directory
// that ends with the test, and returns its path: /bin/busybox with a link for
// each applet, the usual empty directories, and passwd and group with root (0),
// user (1000) and nobody (65534). It fails the test if the package is missing.
func Busybox(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "rootfs")
	for _, dir := range []string{"bin", "sbin", "usr/bin", "usr/sbin", "etc", "dev", "proc", "sys", "run", "var", "home/user"} {
		check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for dir, mode := range map[string]os.FileMode{"tmp": 0o777 | os.ModeSticky, "root": 0o700} {
		check(t, os.Mkdir(filepath.Join(root, dir), 0o755))
		check(t, os.Chmod(filepath.Join(root, dir), mode)) // whatever the umask
	}
	install(t, root)
	for name, text := range map[string]string{
		"etc/passwd":   "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"etc/group":    "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n",
		"etc/hostname": "busybox\n",
		"etc/hosts":    "127.0.0.1 localhost\n",
	} {
		check(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)) //nolint:gosec // world-readable in every system
	}
	if os.Geteuid() == 0 {
		check(t, os.Chown(filepath.Join(root, "home/user"), 1000, 1000))
	}
	return root
}

// Python adds a python3 to a root file system that only prints its program.
func Python(t testing.TB, root string) {
	t.Helper()
	program := "#!/bin/sh\necho \"$2\"\n"
	check(t, os.WriteFile(filepath.Join(root, "usr/bin/python3"), []byte(program), 0o755)) //nolint:gosec // a program
}

// install copies busybox into root and links its applets to it.
func install(t testing.TB, root string) {
	t.Helper()
	const hint = "needs Debian's busybox-static (apt-get install busybox-static): "
	program, err := elf.Open(busybox)
	if err != nil {
		t.Fatal(hint, err)
	}
	defer program.Close()
	if program.Section(".interp") != nil {
		t.Fatal(hint, busybox, " is not a static program")
	}
	data, err := os.ReadFile(busybox)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(root, busybox), data, 0o755)) //nolint:gosec // a program
	applets, err := exec.Command(busybox, "--list-full").Output()
	check(t, err)
	for name := range strings.FieldsSeq(string(applets)) {
		if name = "/" + name; name == busybox {
			continue
		}
		check(t, os.Symlink(busybox, filepath.Join(root, name)))
	}
	if _, err := os.Lstat(filepath.Join(root, "bin/sh")); err != nil {
		t.Fatal(hint, err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal("make a root file system: ", err)
	}
}
