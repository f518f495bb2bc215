package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandbox/test/account"
	"sandbox/test/programs"
)

var (
	only  = flag.String("rootless", some, "attack the boxes of an ordinary user with these `families`, separated by commas; \"\" for all")
	write = flag.String("write", "", "also write the table of that into this `document`")
)

// some are the families that the boxes of an ordinary user meet in each run of the tests:
// those whose walls are not the same as for root.
const some = "namespaces,mounts,writes,init,devices,network"

// TestWithoutRoot attacks the boxes of an ordinary user. The board is root in the network
// namespace that is the host's for that user, and so sees what happens to that host. The
// test is not parallel: some families want nothing to run beside them.
func TestWithoutRoot(t *testing.T) {
	u := account.New(t)
	board, sources := filepath.Join(u.Home, "board"), filepath.Join(u.Home, "families")
	build, err := u.Programs()
	if err == nil {
		err = account.Give(filepath.Join(programs.Dir(), "debian.tar"), filepath.Join(build, "debian.tar"))
	}
	if err = errors.Join(err, os.CopyFS(sources, os.DirFS("../families"))); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-tags", "osusergo,netgo", "-o", board, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "nsenter", u.Host.Option(), "--", board, "-build", build, "-families", sources, "-only", *only, "-write", *write, "-owner", u.ID())
	cmd.Env = append(os.Environ(), "PATH="+account.Path) // that of root may lead where no other user may look
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
}
