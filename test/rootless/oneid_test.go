package rootless_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/test/account"
	"sandbox/test/boxes"
)

// mend is what gives the user ids.
const mend = "sudo usermod --add-subuids "

// TestOneID has boxes of a user who was given no range of ids: their root is the user, and
// there is nobody else.
func TestOneID(t *testing.T) {
	u := newUser(t)
	must(t, os.WriteFile("/etc/subuid", nil, 0o644)) //nolint:gosec // as it is, until the user ends
	defer u.serve(t, u.Outside, "8083", "outside")()
	u.mustSandbox(t, "images", "import", "many", u.manyOwners(t))
	recipe := filepath.Join(u.Home, "recipe")
	must(t, os.Mkdir(recipe, 0o755))                                                                                                                                   //nolint:gosec // for the user
	must(t, os.WriteFile(filepath.Join(recipe, "Dockerfile"), []byte("FROM many\nRUN stat -c %u:%g /data/a >/owner\nCOPY --chown=33:33 Dockerfile /copied\n"), 0o644)) //nolint:gosec // for the user
	u.mustSandbox(t, "build", "-t", "built", recipe)
	u.mustSandbox(t, "create", "--name", "b", "-m", "64", "built")
	defer u.mustSandbox(t, "rm", "-f", "b")
	for script, want := range map[string]string{
		"cat /owner; stat -c %u:%g /copied": "0:0\n0:0\n",
		"id -u; id -g; cat /data/a":         "0\n0\nof 33\n",
		"touch /f; chown 33 /f || echo no":  "no\n",
		"cat /proc/self/setgroups":          "deny\n",
	} {
		if out := u.mustSandbox(t, "exec", "b", "--", "sh", "-c", script); out != want {
			t.Errorf("%s: got %q", script, out)
		}
	}
	boxes.Await(t, "an answer from outside", func() bool { return strings.Contains(u.fromBox(t, account.OutsideIP+":8083"), "outside") })
	u.mustSandbox(t, "cp", filepath.Join(recipe, "Dockerfile"), "b:/there")
	u.mustSandbox(t, "cp", "b:/there", filepath.Join(u.Home, "back"))
	if back, err := os.ReadFile(filepath.Join(u.Home, "back")); err != nil || !bytes.HasPrefix(back, []byte("FROM many")) {
		t.Errorf("copied there and back: %q, %v", back, err)
	}
	if out := u.mustSandbox(t, "exec", "-t", "b", "--", "stat", "-c", "%u", "/dev/stdin"); strings.TrimSpace(out) != "0" {
		t.Errorf("a terminal belongs to %q", out)
	}
	for name, args := range map[string][]string{
		"a box":    {"create", "--network", "None", "--user", "33", "many"},
		"an exec":  {"exec", "--user", "33", "b", "--", "true"},
		"a group":  {"exec", "--user", "0:33", "b", "--", "true"},
		"its name": {"create", "--network", "None", "--user", "www", "many"},
	} {
		if _, complaint, err := u.sandbox(t, args...); err == nil || !strings.Contains(complaint, mend) {
			t.Errorf("%s of another user: %v: %s", name, err, complaint)
		}
	}
	if out, _, _ := u.sandbox(t, "doctor"); !strings.Contains(out, mend) { // it fails where something else is missing
		t.Errorf("doctor does not say it: %s", out)
	}
	if log, err := os.ReadFile(filepath.Join(u.Home, ".sandbox/engine/shim.log")); err != nil || !strings.Contains(string(log), mend) {
		t.Errorf("the log does not say it: %v: %s", err, log)
	}
}

// manyOwners makes a tar of busybox, and of files that belong to others than root.
func (u user) manyOwners(t *testing.T) string {
	t.Helper()
	root, path := u.busybox(t), filepath.Join(u.Home, "many.tar")
	run(t, "tar", "-C", root, "-cf", path, ".")
	out, err := os.Create(path + ".more")
	must(t, err)
	defer out.Close()
	w := tar.NewWriter(out)
	for _, h := range []tar.Header{
		{Name: "data/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: 33, Gid: 33},
		{Name: "data/a", Typeflag: tar.TypeReg, Mode: 0o640, Uid: 33, Gid: 42, Size: 6},
		{Name: "data/link", Typeflag: tar.TypeSymlink, Linkname: "a", Uid: 1000, Gid: 65535},
		{Name: "data/pipe", Typeflag: tar.TypeFifo, Mode: 0o600, Uid: 65534, Gid: 65534},
	} {
		must(t, w.WriteHeader(&h))
		if h.Size > 0 {
			_, err = w.Write([]byte("of 33\n"))
			must(t, err)
		}
	}
	must(t, w.Close())
	run(t, "tar", "--concatenate", "-f", path, path+".more")
	must(t, os.Chmod(path, 0o644)) //nolint:gosec // for the user
	return path
}
