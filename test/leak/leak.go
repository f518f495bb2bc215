// Package leak tells what a test left behind: goroutines, descriptors, mounts,
// cgroups, processes and directories of this project. A namespace lives no longer
// than the processes, descriptors and mounts that hold it, so those stand for
// it.
//
// A suite that makes boxes has
//
//	func TestMain(m *testing.M) { leak.Main(m) }
package leak

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// timeout is how long something may take to go: a home's shim leaves
// within 10 s of its last box and its last client, where the host is not busy.
const timeout = time.Minute

// Main runs the tests of a package, fails if they left something behind, and
// exits.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is [Main] without the exit: it returns the exit code. All temporary
// directories of the tests, and so their homes, lie in one directory: that is how
// processes and mounts of this suite are told from those of another that runs
// at the same time.
func Run(m interface{ Run() int }) int {
	flag.Parse()
	if worker := flag.Lookup("test.fuzzworker"); worker != nil && worker.Value.String() == "true" {
		return m.Run() // a part of a suite: what it leaves, the suite finds
	}
	dir, err := os.MkdirTemp("", "leak-")
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "leak:", err)
		return 2
	}
	before := look()
	code := m.Run()
	left := append(before.wait(timeout), dirs(dir)...)
	for _, line := range left {
		fmt.Fprintln(os.Stderr, "left behind:", line)
	}
	if len(left) > 0 && code == 0 {
		code = 1
	}
	_ = os.RemoveAll(dir)
	return code
}

// Check fails t if, at its end, something is there that is not there now. It
// is for tests that run alone: what a parallel test uses looks like a leak.
func Check(t *testing.T) {
	t.Helper()
	left := Watch()
	t.Cleanup(func() {
		for _, line := range left() {
			t.Errorf("left behind: %s", line)
		}
	})
}

// Watch returns a function that waits for what comes after this call to go, and
// names what does not. The first word of a name is its kind.
func Watch() (left func() []string) {
	before := look()
	return func() []string { return before.wait(timeout) }
}

// seen is what there was at one time.
type seen struct {
	goroutines goleak.Option
	things     map[string]thing
}

// thing is one that can be left behind.
type thing struct {
	name string // the first word is its kind
	ours bool   // this suite is asked for it
}

func look() seen {
	warmUp()
	return seen{goleak.IgnoreCurrent(), things()}
}

// things returns everything that can be left behind but goroutines, by what does not
// change while it is there.
func things() map[string]thing {
	all := processes()
	maps.Copy(all, cgroups())
	for _, list := range [][]string{descriptors(), mounts(), loops()} {
		for _, name := range list {
			all[name] = thing{name, true}
		}
	}
	return all
}

// added leaves those of what is there now that this suite is asked for and that were
// not there then, whoever was asked for them: a box of another suite looks like one of
// this suite once its shim is killed.
func (s seen) added(now map[string]thing) map[string]thing {
	maps.DeleteFunc(now, func(key string, is thing) bool {
		_, known := s.things[key]
		return known || !is.ours
	})
	return now
}

// wait returns what is there now, was not there then, and does not go in time.
// What comes and goes meanwhile is another suite's. A cgroup, and an init whose home
// has no shim, don't tell whose they are: what another suite leaves of these is named
// here too.
func (s seen) wait(timeout time.Duration) []string {
	deadline := time.Now().Add(timeout)
	left := s.added(things())
	for len(left) > 0 && time.Now().Before(deadline) {
		// Nothing tells of all these together: look again and again.
		time.Sleep(10 * time.Millisecond)
		now := s.added(things())
		maps.DeleteFunc(left, func(key string, _ thing) bool { return !now[key].ours })
	}
	var lines []string
	for _, is := range left {
		lines = append(lines, is.name)
	}
	slices.Sort(lines)
	if err := goleak.Find(s.goroutines); err != nil {
		lines = append(lines, strings.TrimSpace(err.Error()))
	}
	return lines
}
