package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sandbox/core/local"
	"sandbox/test/leak"
	"sandbox/test/programs"
	"sandbox/test/registry"
	"sandbox/test/rootfs"
)

func TestMain(m *testing.M) {
	testscript.Main(leaving{m}, map[string]func(){"sandbox": main})
}

// leaving runs the tests and fails if they leave something behind.
type leaving struct{ *testing.M }

func (l leaving) Run() int { return leak.Run(l.M) }

// TestScripts runs the command line with real boxes, one script a verb. Each
// has a home of its own, and $ROOTFS is a root file system of busybox.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, testscript.Params{Dir: "../../test/script"}, false))
}

// TestScriptsOverADaemon runs those about boxes again, with a daemon in the
// home: the same command lines go through REST then, over TCP and with a key.
func TestScriptsOverADaemon(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, testscript.Params{Files: []string{
		"../../test/script/life.txtar", "../../test/script/exec.txtar", "../../test/script/run.txtar", "../../test/script/storage.txtar",
		"../../test/script/cp.txtar", "../../test/script/attach.txtar", "../../test/script/own.txtar", "../../test/script/code.txtar", "../../test/script/build.txtar",
	}}, true))
}

// TestServerScripts runs what is about servers: keys, profiles, where a
// command goes.
func TestServerScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, testscript.Params{Dir: "../../test/script/server"}, false))
}

// scripts completes the parameters of a run; with served each script begins
// with a daemon, which its condition [daemon] tells.
func scripts(t *testing.T, p testscript.Params, served bool) testscript.Params {
	root := rootfs.Busybox(t)
	p.RequireExplicitExec = true
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "registry": startRegistry(t), "daemon": daemonCommand, "certificate": certificate,
	}
	p.Condition = func(cond string) (bool, error) {
		if cond != "daemon" {
			return false, errors.New("no such condition")
		}
		return served, nil
	}
	p.Setup = func(env *testscript.Env) error {
		home := filepath.Join(env.WorkDir, "home")
		env.Setenv("SANDBOX_HOME", home)
		env.Setenv("HOME", filepath.Join(env.WorkDir, "user"))
		env.Setenv("SANDBOX_HELPER_DIR", programs.Dir())
		env.Setenv("ROOTFS", root)
		env.Defer(func() { removeBoxes(t, home) })
		d := &slot{}
		d.endWith(t, env)
		if !served {
			return nil
		}
		env.Setenv("SANDBOX_PROFILE", "default")
		var err error
		d.running, err = serve(env.Vars, "--host-root", root, "--host-root", env.WorkDir, "--host-root", "/usr")
		return err
	}
	return p
}

// startRegistry returns the script command that starts a registry with the
// image box:v1, and those of [registry.Commands] as tags of own, and sets
// $REGISTRY to its address.
func startRegistry(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, _ []string) {
		r := registry.Start(t, registry.Options{})
		r.Push(t, "box:v1", registry.Busybox(t))
		for tag, image := range registry.Commands(t) {
			r.Push(t, "own:"+tag, image)
		}
		ts.Setenv("REGISTRY", r.Host)
	}
}

// removeBoxes ends what a script, also one that failed, has left.
func removeBoxes(t *testing.T, home string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, err := local.Open(local.Config{Home: home, Beside: programs.Dir()})
	if err != nil {
		t.Error(err)
		return
	}
	boxes, err := host.List(ctx)
	for _, box := range boxes {
		err = errors.Join(err, host.Remove(ctx, box.ID, true))
	}
	if err := errors.Join(err, host.Close(ctx)); err != nil {
		t.Error(err)
	}
}

// exits runs a command that must end with the exit code given: exits 3 CMD...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit %d, want %d", code, want)
	}
}
