package build_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/build"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/programs"
)

// kills is how often something is killed; `go test ./test/build -args -kills 150` does it
// as often as the project asks for.
var kills = flag.Int("kills", 9, "how often TestKilled kills the shim, the building program, or both")

// killedRecipe has steps that run, copy and unpack, each of which looks at what the ones
// before it have made. Each round has a first step of its own, so nothing is cached.
const killedRecipe = `FROM base AS one
ARG ROUND
RUN seq 100000 >/bulk; md5sum /bulk >/sum; echo $ROUND >/round
COPY file dir /copied/
RUN md5sum -c /sum; mkdir /many; cd /many; seq 300 | xargs touch; rm /copied/removed
FROM base
COPY --from=one /bulk /sum /round /many /from/
RUN cd /from; sed -i s,/bulk,/from/bulk, sum; md5sum -c sum; echo whole >/last
`

// wholeness prints what an image of the recipe has.
const wholeness = "cd /from; md5sum -c sum; cat round /last; ls | grep -c '^[0-9]*$'"

// TestKilled kills the shim, the program that builds, or both at some moment of a build.
// Nothing of the build is left but what its steps have made, and that is whole: the next
// build succeeds with it.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "dir"), 0o755))
	for _, name := range []string{"file", "dir/file2", "dir/removed"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(name, 10_000)), 0o644))
	}
	begin := time.Now()
	h.rebuild(dir, -1)
	took := time.Since(begin)
	before, cached := h.state(), 0
	stay := h.resident()
	for i := range *kills {
		h.broken(dir, i, took)
		h.alone(stay)
		cached += h.rebuild(dir, i)
		h.alone(stay)
		if i%10 == 9 {
			must(t, h.forget())
		}
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	t.Logf("%d kills; %d steps of broken builds were used again", *kills, cached)
	must(t, stay.Remove(t.Context(), true))
	must(t, h.forget())
	h.rebuild(dir, -1)
	if after := h.state(); len(strings.Fields(after)) != len(strings.Fields(before)) {
		t.Errorf("there was %s, and is %s", before, after)
	}
	h.noneTemporary()
}

// resident makes a box that stays, so that there always is a shim.
func (h home) resident() *core.Box {
	h.t.Helper()
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.Network, o.AutoRemove = "base", 1, 64, options.NetworkNone, false
	b, _, err := h.Create(h.t.Context(), o)
	must(h.t, err)
	return b
}

// broken builds in another process, and kills what it kills in this round.
func (h home) broken(dir string, round int, took time.Duration) {
	h.t.Helper()
	shim := boxes.ShimPID(h.t, h.Home)
	cmd := exec.Command(filepath.Join(programs.Dir(), "sandbox"), "--local", "build", "-f", "-", "--build-arg", fmt.Sprint("ROUND=", round),
		"--network", "None", "--cpus", "1", "-m", "64", "-t", "built", dir) //nolint:gosec // our own program
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+h.Home, "SANDBOX_HELPER_DIR="+programs.Dir())
	cmd.Stdin = strings.NewReader(killedRecipe)
	must(h.t, cmd.Start())
	time.Sleep(time.Duration(rand.Int64N(int64(took)))) // any moment of the build
	if round%3 != 1 {
		_ = syscall.Kill(shim, syscall.SIGKILL)
	}
	if round%3 != 0 {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait() // it may have ended well, or told of the shim
}

// alone waits until a box is the only one. A shim that was killed has a successor once
// somebody asks for something; it ends the boxes whose programs have ended.
func (h home) alone(stay *core.Box) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := stay.Start(ctx); err != nil && !fault.Is(err, fault.InvalidState) { // it runs already
			h.t.Fatal(err)
		}
		all, err := h.List(ctx)
		if err == nil && len(all) == 1 && all[0].ID == stay.ID() {
			return
		}
		if ctx.Err() != nil {
			h.t.Fatalf("left: %v, %v", all, err)
		}
		time.Sleep(10 * time.Millisecond) // there is no event of a home
	}
}

// rebuild builds the recipe of a round, checks the image, and returns how many steps were
// taken from the build before.
func (h home) rebuild(dir string, round int) int {
	h.t.Helper()
	files, err := tree.Open(h.t.Context(), dir)
	must(h.t, err)
	defer func() { must(h.t, files.Close()) }()
	r := &report{}
	_, err = h.Builder().Build(h.t.Context(), build.Options{
		Recipe: []byte(killedRecipe), Context: files, Name: "built", Args: map[string]string{"ROUND": fmt.Sprint(round)},
		NoNetwork: true, CPUs: 1, MemoryMiB: 64, Report: r,
	})
	must(h.t, err)
	if got, want := h.sh("built", "0", wholeness), fmt.Sprintf("bulk: OK\n%d\nwhole\n300\n", round); !strings.HasSuffix(got, want) {
		h.t.Errorf("round %d: the image has %q, and not %q", round, got, want)
	}
	return r.cached()
}

// forget removes the image and all that steps have made.
func (h home) forget() error {
	err := h.Images.Remove(h.t.Context(), "built", true)
	if err == nil || fault.Is(err, fault.ImageNotFound) {
		_, err = h.Images.Prune(h.t.Context(), false)
	}
	return err
}

// noneTemporary wants nothing in the home that was to be renamed or removed.
func (h home) noneTemporary() {
	h.t.Helper()
	must(h.t, filepath.WalkDir(h.Home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "tmp-") {
			h.t.Errorf("left: %s", path)
		}
		return err
	}))
}
