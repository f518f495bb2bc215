// Package enginetest is a suite of tests of what every [core.Engine] must do.
// It runs on the real engine and on the fake, so that tests that use the fake
// can be trusted.
package enginetest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// timeout is the limit for what must not hang. A test that passes never waits
// that long.
const timeout = time.Minute

// tests are those of the suite, by their names.
var tests = map[string]func(*testing.T, *suite){
	"lifecycle":            lifecycle,
	"auto_remove":          autoRemove,
	"names":                names,
	"same id":              sameID,
	"list":                 list,
	"unknown box":          unknownBox,
	"root file system":     rootFileSystem,
	"disk":                 disk,
	"many boxes":           manyBoxes,
	"output":               output,
	"binary data":          binaryData,
	"ends":                 ends,
	"input":                input,
	"terminal":             terminal,
	"terminal size":        terminalSize,
	"hang up":              hangUp,
	"environment":          environment,
	"working directory":    workingDirectory,
	"users":                users,
	"can't be started":     cannotBeStarted,
	"signal":               signal,
	"interrupt":            interrupt,
	"cancel":               cancel,
	"cancel with grace":    cancelWithGrace,
	"timeout":              timedOut,
	"background":           background,
	"released":             released,
	"many execs":           manyExecs,
	"stop ends execs":      stopEndsExecs,
	"exec needs a running": execNeedsRunning,
	"pause":                pause,
	"paused ends":          pausedEnds,
	"paused upload":        pausedUpload,
	"expiry":               expiry,
	"expiries":             expiries,
	"idle":                 idle,
	"update":               update,
	"auto start":           autoStart,
	"auto start once":      autoStartOnce,
	"auto start stopping":  autoStartStopping,
	"usage":                usage,
	"streams":              streams,
	"records":              records,
	"unknown exec":         unknownExec,
	"attach":               attach,
	"attach after the end": attachAfterEnd,
	"one reader":           oneReader,
	"kept input":           keptInput,
	"await":                await,
	"await a stop":         awaitStop,
	"cancel by id":         cancelByID,
	"signal by id":         signalByID,
	"sweep":                sweep,
	"uploads":              uploads,
	"files refused":        filesRefused,
	"broken upload":        brokenUpload,
	"stat of files":        statsFiles,
	"lists of files":       listsFiles,
	"changes of files":     changesFiles,
	"users that are found": knowsUsers,
	"refused in place":     inPlaceRefused,
	"tars":                 tars,
	"ports":                ports,
}

// Run runs the suite on one engine. rootfs is a directory with a shell and the
// usual commands, as busybox has them, and with the users root (0) and nobody
// (65534). newEngine returns a new engine and closes it when its test ends.
func Run(t *testing.T, newEngine func(t *testing.T) core.Engine, rootfs string) {
	s := (&suite{newEngine: newEngine, rootfs: rootfs}).fresh(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

type suite struct {
	core.Images // its methods that no test of the suite needs
	newEngine   func(t *testing.T) core.Engine
	engine      core.Engine
	runtime     *core.Runtime
	rootfs      string
}

// fresh returns a suite with a new engine, which has no boxes.
func (s *suite) fresh(t *testing.T) *suite {
	t.Helper()
	f := &suite{newEngine: s.newEngine, engine: s.newEngine(t), rootfs: s.rootfs}
	f.runtime = core.New(core.Config{Engine: f.engine, Images: f})
	return f
}

// Resolve returns the same image for every name. The image has settings of its
// own.
func (s *suite) Resolve(_ context.Context, ref string) (core.Image, error) {
	return core.Image{
		Ref: ref, ID: "sha256:0", Layers: []string{s.rootfs}, WorkingDir: "/usr",
		Env: []string{"FROM=image", "ONLY_IMAGE=1", "HOME=/image"}, User: "nobody",
	}, nil
}

// Command returns the same command for every name.
func (s *suite) Command(context.Context, string) ([]string, error) { return []string{"/bin/true"}, nil }

// context returns a context that ends with the test, or after the timeout if
// the test hangs.
func (s *suite) context(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// box returns a new box, which is removed when the test ends.
func (s *suite) box(t *testing.T, change ...func(*options.Box)) *core.Box {
	t.Helper()
	o := options.Defaults()
	o.RootfsPath, o.CPUs, o.MemoryMiB, o.AutoRemove = s.rootfs, 1, 128, false
	for _, c := range change {
		c(&o)
	}
	if o.Image != "" {
		o.RootfsPath = ""
	}
	box, _, err := s.runtime.Create(s.context(t), o)
	if err != nil {
		t.Fatal("create: ", err)
	}
	t.Cleanup(func() {
		err := s.engine.Remove(context.Background(), box.ID(), true)
		if err != nil && !fault.Is(err, fault.BoxNotFound) {
			t.Error("remove: ", err)
		}
	})
	return box
}

// result is what an exec returned: its end and all of its output.
type result struct {
	api.ExitStatus
	out, err string
}

// shell runs a script until it ends and returns its result.
func (s *suite) shell(t *testing.T, box *core.Box, script string) result {
	t.Helper()
	return s.run(t, box, options.Exec{Cmd: sh(script)})
}

func (s *suite) run(t *testing.T, box *core.Box, o options.Exec) result {
	t.Helper()
	return s.finish(t, s.start(t, box, o))
}

func (s *suite) start(t *testing.T, box *core.Box, o options.Exec) *core.Exec {
	t.Helper()
	e, err := box.Exec(s.context(t), o)
	if err != nil {
		t.Fatalf("exec %.100q: %v", o.Cmd, err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func (s *suite) finish(t *testing.T, e *core.Exec) result {
	t.Helper()
	return s.watch(t, e, func(string) {})
}

// watch reads the output of e until its end. Each time more of stdout has
// arrived, it calls seen with all of stdout so far.
func (s *suite) watch(t *testing.T, e *core.Exec, seen func(stdout string)) result {
	t.Helper()
	var out, err bytes.Buffer
	status, streamErr := e.Stream(s.context(t), make([]byte, core.OutputBuffer), func(stderr bool, p []byte) error {
		if stderr {
			err.Write(p)
			return nil
		}
		out.Write(p)
		seen(out.String())
		return nil
	})
	if streamErr != nil {
		t.Errorf("stream: %v (so far: %.200q, %.200q)", streamErr, out.String(), err.String())
	}
	return result{status, out.String(), err.String()}
}

// once returns a function that calls do the first time that text has a whole
// line.
func once(do func(line string)) func(text string) {
	done := false
	return func(text string) {
		if line, _, ok := strings.Cut(text, "\n"); ok && !done {
			done = true
			do(strings.TrimSpace(line))
		}
	}
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func want(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
}

func (r result) wants(t *testing.T, w api.ExitStatus) {
	t.Helper()
	r.Message, r.FinishedAt = "", time.Time{}
	if r.ExitStatus != w {
		t.Errorf("ended %+v, want %+v; stdout %.200q, stderr %.200q", r.ExitStatus, w, r.out, r.err)
	}
}

func exited(code int) api.ExitStatus {
	if code == 0 {
		return api.ExitStatus{Status: api.ExecSucceeded, Reason: api.ReasonExited}
	}
	return api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonExited, ExitCode: code}
}

// ended returns the status of a command whose last signal was sig.
func ended(status api.ExecStatus, reason api.Reason, sig int) api.ExitStatus {
	return api.ExitStatus{Status: status, Reason: reason, ExitCode: 128 + sig, Signal: sig}
}
