package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// TestMakeUser makes a user in boxes whose accounts are whole, odd and missing.
func TestMakeUser(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	for name, c := range map[string]struct {
		users, groups, prepare string
		id, home               string
	}{
		"whole":        {"root:x:0:0:root:/root:/bin/sh\n", "root:x:0:\n", "true", "uid=1000(user) gid=1000(user)", "/home/user"},
		"no last line": {"root:x:0:0:root:/root:/bin/sh", "root:x:0:", "true", "uid=1000(user) gid=1000(user)", "/home/user"},
		"ids in use":   {"a:x:1000:5::/:\n", "b:x:1001:\n", "true", "uid=1002(user) gid=1002(user)", "/home/user"},
		"none":         {"", "", "rm /etc/passwd /etc/group", "uid=1000(user) gid=1000(user)", "/home/user"},
		"there":        {"user:x:7:8::/srv:/bin/sh\n", "user:x:8:\n", "true", "uid=7(user) gid=8(user)", "/srv"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := withAccounts(t, c.users, c.groups)
			box, err := boxWith(t, e, root, func(*options.Box) {})
			if err != nil {
				t.Fatal(err)
			}
			sh(t, e, box, "mkdir -p /srv; "+c.prepare)
			for again := range 2 {
				got, err := e.User(t.Context(), box, options.User{Name: "user", Make: true})
				if err != nil || got.Home != c.home || got.Made != (again == 0 && name != "there") {
					t.Fatalf("got %+v, %v", got, err)
				}
			}
			if _, err := e.User(t.Context(), box, options.User{Name: "other"}); !fault.Is(err, fault.InvalidArgument) {
				t.Errorf("a user that is not to be made: %v", err)
			}
			said := sh(t, e, box, "cat /etc/passwd; stat -c '%u %g %a' "+c.home+"; id user; ls -A /etc /home")
			if !strings.Contains(said, c.id) || strings.Count(said, "user:x:") != 1 || strings.Contains(said, ".sandbox-") {
				t.Errorf("got\n%s", said)
			}
			if name != "there" && !strings.Contains(said, strings.TrimSuffix(strings.TrimPrefix(strings.Fields(c.id)[0], "uid="), "(user)")+" ") {
				t.Errorf("the home is another's:\n%s", said)
			}
		})
	}
}

// TestOwner makes files as root for another user of the box.
func TestOwner(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	box, err := boxWith(t, e, withAccounts(t, "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/:\n", "root:x:0:\n"), func(*options.Box) {})
	must(t, err)
	_, err = e.MakeDirectory(t.Context(), box, options.MakeDirectory{Path: "/srv/a/b", Owner: "web"})
	must(t, err)
	sh(t, e, box, "echo old >/srv/a/old")
	for _, name := range []string{"/srv/a/c/f", "/srv/a/old"} {
		_, err = e.Upload(t.Context(), box, core.Upload{Dest: name, Owner: "web"}, strings.NewReader("x"))
		must(t, err)
	}
	want := "/srv/a 33:34\n/srv/a/b 33:34\n/srv/a/c 33:34\n/srv/a/c/f 33:34\n/srv/a/old 0:0\n"
	if got := sh(t, e, box, "cd /srv/a && stat -c '%n %u:%g' /srv/a /srv/a/b /srv/a/c /srv/a/c/f /srv/a/old"); got != want {
		t.Errorf("got\n%s", got)
	}
	_, err = e.Upload(t.Context(), box, core.Upload{Dest: "/srv/g", Owner: "none"}, strings.NewReader("x"))
	if _, stat := e.StatFile(t.Context(), box, options.StatFile{Path: "/srv/g"}); !fault.Is(err, fault.InvalidArgument) || !fault.Is(stat, fault.FileNotFound) {
		t.Errorf("for a user that is not there: %v, and the file: %v", err, stat)
	}
	if _, err = e.MakeDirectory(t.Context(), box, options.MakeDirectory{Path: "/tmp/h", User: "web", Owner: "root"}); err == nil {
		t.Error("a user gives a directory away")
	}
}

// TestMakeUserRefused wants a box that can't have a user to say so, and to have no half
// of one.
func TestMakeUserRefused(t *testing.T) {
	t.Parallel()
	e := boxes.Open(t, t.TempDir())
	for name, prepare := range map[string]string{
		"a file as home":    "touch /home",
		"a directory":       "rm /etc/group; mkdir /etc/group",
		"a magic link":      "rm /etc/passwd; ln -s /proc/self/fd/0 /etc/passwd",
		"too many accounts": "dd if=/dev/zero of=/etc/passwd bs=1M count=2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, err := boxWith(t, e, withAccounts(t, "root:x:0:0:root:/root:/bin/sh\n", "root:x:0:\n"), func(*options.Box) {})
			if err != nil {
				t.Fatal(err)
			}
			sh(t, e, box, prepare)
			if got, err := e.User(t.Context(), box, options.User{Name: "user", Make: true}); err == nil {
				t.Errorf("got %+v", got)
			}
			if said := sh(t, e, box, "grep user:x: /etc/passwd; ls -A /etc"); strings.Contains(said, "user:x:") || strings.Contains(said, ".sandbox-") {
				t.Errorf("left %s", said)
			}
		})
	}
}

// withAccounts returns a root file system that has these users and groups, and no home.
func withAccounts(t *testing.T, users, groups string) string {
	t.Helper()
	root := rootfs.Busybox(t)
	must(t, os.RemoveAll(filepath.Join(root, "home")))
	must(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte(users), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "etc/group"), []byte(groups), 0o644))
	return root
}
