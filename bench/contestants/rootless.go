package contestants

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sandbox/bench/harness"
	"sandbox/core"
	"sandbox/test/account"
)

// RootlessArgument makes this program the library of an ordinary user, with a directory of
// programs, a root file system and a home as further arguments.
const RootlessArgument = "rootless"

// Rootless is an ordinary user, with the library in a process of that user's, and podman.
type Rootless struct {
	user    *account.User
	library *harness.Conversation
	rootfs  string
}

// Rootless makes the user. The caller closes it.
func (b *Field) Rootless(ctx context.Context) (*Rootless, error) {
	u, err := account.Make()
	if err != nil {
		return nil, err
	}
	r := &Rootless{user: u, rootfs: filepath.Join(u.Home, "rootfs")}
	if err := r.open(ctx, b); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

func (r *Rootless) open(ctx context.Context, b *Field) error {
	programs, err := r.user.Programs()
	if err != nil {
		return err
	}
	self := filepath.Join(r.user.Home, "bench")
	if err := account.Give("/proc/self/exe", self); err != nil {
		return err
	}
	if err := errors.Join(makeRootfs(r.rootfs, filepath.Join(b.Tools, "bench")), r.user.Own(r.rootfs)); err != nil {
		return err
	}
	r.library, err = harness.Converse(r.command(ctx, self, RootlessArgument, programs, r.rootfs, filepath.Join(r.user.Home, "boxes")))
	return err
}

// command returns a command of the user's.
func (r *Rootless) command(ctx context.Context, args ...string) harness.Command {
	env := append([]string{"env", "-i", "XDG_RUNTIME_DIR=" + r.user.Home}, r.user.Command(ctx, "").Env...)
	return harness.Command{Args: r.user.Command(ctx, "", append(env, args...)...).Args}
}

// Ours returns the library as a contestant that makes boxes up to their first output.
func (r *Rootless) Ours() harness.Contestant {
	return harness.Contestant{Name: "ours, without root", Version: core.Version, Isolation: "user mount pid net ipc uts cgroup ns, cgroup, caps, masked paths, overlay, seccomp", Run: func(context.Context) (time.Duration, error) {
		said, err := r.library.Ask("")
		if err != nil {
			return 0, err
		}
		took, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			err = errors.New(said)
		}
		return time.Duration(took), err
	}}
}

// Podman returns podman as a contestant that does the same. It has no network, since that
// of Debian's podman needs another package, and no limits, since it can't set them on
// cgroup v1.
func (r *Rootless) Podman(ctx context.Context, b *Field) harness.Contestant {
	path, version, why := FindTool(ctx, b, "podman")
	return harness.Contestant{Name: "podman, without root", Version: version, Isolation: "user mount pid net ipc uts ns, caps, seccomp, masked paths; no network, no limits", Why: why,
		Run: func(ctx context.Context) (time.Duration, error) {
			t, err := r.podman(ctx, path, "run", "--rm", "--network", "none", "--rootfs", r.rootfs, "echo", "hi")
			return t.First, err
		}}
}

func (r *Rootless) podman(ctx context.Context, path string, args ...string) (harness.Timing, error) {
	at := func(name string) string { return filepath.Join(r.user.Home, "podman", name) }
	global := []string{path, "--root", at("root"), "--runroot", at("run"), "--tmpdir", at("tmp"), "--cgroup-manager", "cgroupfs", "--events-backend", "file"}
	return r.command(ctx, append(global, args...)...).Run(ctx)
}

// Close ends the library and removes the user.
func (r *Rootless) Close(ctx context.Context) error {
	var err error
	if r.library != nil {
		err = r.library.Close()
	}
	if _, statErr := os.Stat(filepath.Join(r.user.Home, "podman")); statErr == nil {
		_, migrated := r.podman(ctx, "podman", "system", "migrate") // ends the process that keeps podman's namespaces
		err = errors.Join(err, migrated)
	}
	return errors.Join(err, r.user.Close())
}

// ServeRootless is the library of that user: for each line that it reads it makes a box up
// to its first output, and answers with the nanoseconds that this took, or with why it failed.
func ServeRootless(programs, rootfs, home string) error {
	ours := openOurs(&Field{Tools: programs, Rootfs: rootfs}, home, 0)
	if ours.Why != "" {
		return errors.New(ours.Why)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		took, err := ours.CreateToOutput(context.Background())
		if err != nil {
			fmt.Printf("%q\n", err.Error())
			continue
		}
		fmt.Println(took.Nanoseconds())
	}
	return ours.Close(context.Background())
}
