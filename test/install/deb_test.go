package install_test

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// debian is a small Debian, which has dpkg.
const debian = top + "/build/debian.tar"

// TestDeb builds the package twice, installs it in a Debian of its own, uses it there
// and takes it away again.
func TestDeb(t *testing.T) { //nolint:paralleltest // it builds the tree that the other tests build
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.deb"), filepath.Join(dir, "second.deb")
	makes(t, "deb", "DEB="+first, "DEB_LEVEL=0")
	makes(t, "deb-pack", "DEB="+second, "DEB_LEVEL=0")
	if sum(t, first) != sum(t, second) {
		t.Error("the same commit gives other bytes")
	}
	root := filepath.Join(dir, "debian")
	if err := os.Mkdir(root, 0o755); err != nil { //nolint:gosec // the root of a system
		t.Fatal(err)
	}
	run(t, nil, "tar", "-xf", debian, "-C", root)
	before := everything(t, root)
	if err := os.Rename(first, filepath.Join(root, "sandbox.deb")); err != nil {
		t.Fatal(err)
	}
	in := func(args ...string) string { return run(t, nil, "chroot", append([]string{root}, args...)...) }
	for range 2 { // a second time it is an upgrade to itself, and changes nothing
		in("dpkg", "-i", "/sandbox.deb")
	}
	t.Run("installed", func(t *testing.T) { installed(t, root, in) })
	t.Run("units", func(t *testing.T) { verify(t, root) })
	in("dpkg", "--remove", "sandbox")
	if out := in("sh", "-c", "ls /etc/sandbox; command -v sandbox || :"); out != "config.toml\n" {
		t.Errorf("after a removal: %s", out)
	}
	in("dpkg", "-i", "/sandbox.deb") // what is masked after a removal is there again
	if out := in("sh", "-c", "find /etc/systemd -name 'sandbox.*' -lname /dev/null"); out != "" {
		t.Errorf("masked after an installation: %s", out)
	}
	for range 2 {
		in("dpkg", "--purge", "sandbox")
	}
	in("rm", "/sandbox.deb")
	left := everything(t, root)
	left = slices.DeleteFunc(left, func(path string) bool {
		return slices.Contains(before, path) || kept.MatchString(path)
	})
	if len(left) > 0 {
		t.Errorf("left after a purge: %v", left)
	}
	for _, name := range []string{"etc/group", "etc/gshadow"} {
		if text, err := os.ReadFile(filepath.Join(root, name)); err == nil && strings.Contains(string(text), "sandbox") {
			t.Errorf("%s names the group", name)
		}
	}
}

// kept are files of dpkg and of the programs that keep groups: logs, and copies of what
// was before.
var kept = regexp.MustCompile(`^(var/log/dpkg\.log|var/log/alternatives\.log|var/lib/dpkg/[^/]+|etc/(group|gshadow|passwd|shadow|subuid|subgid)-?|etc/\.pwd\.lock|var/lib/systemd(/.*)?|etc/systemd(/[^/]*)?|etc/systemd/system/[a-z-]+\.target\.wants)$`)

func installed(t *testing.T, root string, in func(...string) string) {
	if out := in("sandbox", "version"); !strings.Contains(out, "sandbox") {
		t.Errorf("version: %s", out)
	}
	// This Debian takes no manual pages and few documents.
	if out := in("sh", "-c", "dpkg --verify sandbox | grep -vE ' /usr/share/(man|doc|lintian)/' || :"); out != "" {
		t.Errorf("dpkg --verify: %s", out)
	}
	if out := in("getent", "group", "sandbox"); !strings.HasPrefix(out, "sandbox:") {
		t.Errorf("the group: %s", out)
	}
	if out, version := in("/usr/libexec/sandbox/sandbox-shim", "version"), in("sandbox", "version"); !strings.Contains(version, strings.TrimSpace(out)) {
		t.Errorf("the shim is of version %s", out)
	}
	in("sh", "-c", "ldd /usr/libexec/sandbox/sandbox-logs && ! ldd /usr/libexec/sandbox/sandbox-logs | grep 'not found'")
	for _, unit := range []string{"multi-user.target.wants/sandbox.service", "sockets.target.wants/sandbox.socket"} {
		if _, err := os.Lstat(filepath.Join(root, "etc/systemd/system", unit)); err != nil {
			t.Errorf("not enabled: %v", err)
		}
	}
}

// verify has systemd read the units, with the paths of the installation.
func verify(t *testing.T, root string) {
	units := t.TempDir()
	for _, name := range []string{"sandbox.service", "sandbox.socket"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system", name))
		if err != nil {
			t.Fatal(err)
		}
		placed := strings.ReplaceAll(string(text), "ExecStart=/usr", "ExecStart="+root+"/usr")
		placed = strings.ReplaceAll(placed, "SocketGroup=sandbox", "SocketGroup=root") // the group is not of this host
		if err := os.WriteFile(filepath.Join(units, name), []byte(placed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", //nolint:gosec // of this test's own
		filepath.Join(units, "sandbox.service"), filepath.Join(units, "sandbox.socket")).CombinedOutput()
	if said := regexp.MustCompile(`(?m)^.*sandbox\.(service|socket).*$`).FindString(string(out)); err != nil || said != "" {
		t.Errorf("%v: %s", err, out)
	}
}

func sum(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// everything returns the paths of all that is below a directory, from there on.
func everything(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			path, err = filepath.Rel(dir, path)
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}
