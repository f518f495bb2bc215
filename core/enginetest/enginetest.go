// Package enginetest is a suite of tests of what every [core.Engine] must do.
// It runs on the real engine and on the fake, so that tests that use the fake
// can be trusted.
package enginetest

import (
	"bytes"
	"cmp"
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
const timeout = 3 * time.Minute

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

// Subject is an engine that the suite runs on, and what its boxes are made of.
type Subject struct {
	// New returns a new engine, which has no boxes, and closes it when the test ends.
	New func(t *testing.T) core.Engine
	// Rootfs is a directory with a shell and the usual commands, as busybox has them, and
	// with the users root (0) and nobody (65534). It is "" for an engine that finds images
	// by itself.
	Rootfs string
	// Plain and Set name images for such an engine: both have what Rootfs has, and Set has
	// the settings of [suite.Resolve] too.
	Plain, Set string
	// Lacks says why the engine does not do something. It refuses that as unsupported,
	// and the suite tests that it does.
	Lacks map[Ability]string
	// Instead has other tests in place of those of what the engine does differently, by
	// their names.
	Instead map[string]Instead
}

// Ability is what an engine may lack.
type Ability string

// The abilities.
const (
	Stop      Ability = "stop"       // and start again, with the same disk
	Pause     Ability = "pause"      // and resume
	Idle      Ability = "idle"       // to end boxes that nobody uses
	AutoStart Ability = "auto_start" // to start boxes that somebody uses
	OnHost    Ability = "on_host"    // to tell the PIDs of boxes, and how many bytes of this host's disk they have
)

// needs names the tests of abilities.
var needs = map[string]Ability{
	"pause": Pause, "paused ends": Pause, "paused upload": Pause, "idle": Idle, "auto start": AutoStart,
	"auto start once": AutoStart, "auto start stopping": AutoStart, "disk": Stop, "sweep": Stop, "lifecycle": Stop,
	"stop ends execs": Stop, "exec needs a running": Stop, "await a stop": Stop, "expiries": Pause,
}

// Instead says why an engine differs in a case, and tests what it does there.
type Instead struct {
	Reason string
	Test   func(t *testing.T, engine core.Engine, box func(change ...func(*options.Box)) *core.Box)
}

// Run runs the suite on one engine.
func Run(t *testing.T, subject Subject) {
	for name := range subject.Instead {
		if tests[name] == nil {
			t.Errorf("the suite has no test %q that could differ", name)
		}
	}
	s := (&suite{Subject: subject}).fresh(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other, differs := subject.Instead[name]
			switch {
			case differs:
				t.Log("differs: " + other.Reason)
				other.Test(t, s.engine, func(change ...func(*options.Box)) *core.Box { return s.box(t, change...) })
			case s.lacks(needs[name]):
				t.Log("lacks: " + s.Lacks[needs[name]])
				s.refuses(t, needs[name])
			default:
				test(t, s)
			}
		})
	}
}

type suite struct {
	Subject
	core.Images // its methods that no test of the suite needs
	engine      core.Engine
	runtime     *core.Runtime
}

func (s *suite) lacks(a Ability) bool { return s.Lacks[a] != "" }

// refuses tests that an engine that lacks an ability says so, and does nothing else.
func (s *suite) refuses(t *testing.T, a Ability) {
	t.Helper()
	ctx := s.context(t)
	refused := func(err error) { t.Helper(); want(t, err, fault.Unsupported) }
	create := func(change func(*options.Box)) error {
		o := options.Defaults()
		s.root(&o)
		o.CPUs = 1
		change(&o)
		_, _, err := s.runtime.Create(ctx, o)
		return err
	}
	switch a {
	case Stop:
		box := s.box(t)
		_, err := box.Stop(ctx, grace)
		refused(err)
		s.shell(t, box, "true").wants(t, exited(0))
	case Pause:
		box := s.box(t)
		_, err := box.Pause(ctx, false)
		refused(err)
		_, err = box.Resume(ctx)
		refused(err)
		s.shell(t, box, "true").wants(t, exited(0))
		refused(create(func(o *options.Box) { o.TTLSeconds, o.OnExpiry = 1, options.ExpiryPause }))
	case Idle:
		refused(create(func(o *options.Box) { o.IdleSeconds = 1 }))
	case AutoStart:
		refused(create(func(o *options.Box) { o.AutoRemove, o.AutoStart = false, true }))
	}
}

// stops stops a box, and returns whether the engine can.
func (s *suite) stops(t *testing.T, box *core.Box) bool {
	t.Helper()
	_, err := box.Stop(s.context(t), grace)
	if s.lacks(Stop) {
		want(t, err, fault.Unsupported)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// fresh returns a suite with a new engine, which has no boxes.
func (s *suite) fresh(t *testing.T) *suite {
	t.Helper()
	f := &suite{Subject: s.Subject, engine: s.New(t)}
	f.runtime = core.New(core.Config{Engine: f.engine, Images: f})
	return f
}

// Resolve returns the same image for every name. The image has settings of its
// own.
func (s *suite) Resolve(_ context.Context, ref string) (core.Image, error) {
	return core.Image{
		Ref: ref, ID: "sha256:0", Layers: []string{s.Rootfs}, WorkingDir: "/usr",
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
	box, _ := s.create(t, change...)
	return box
}

// create does what box does, and returns the record of the new box too: one that is asked
// for later may be of a box whose time has come.
func (s *suite) create(t *testing.T, change ...func(*options.Box)) (*core.Box, core.Record) {
	t.Helper()
	o := options.Defaults()
	s.root(&o)
	o.CPUs, o.MemoryMiB, o.AutoRemove = 1, 128, false
	for _, c := range change {
		c(&o)
	}
	box, rec, err := s.runtime.Create(s.context(t), o)
	if err != nil {
		t.Fatal("create: ", err)
	}
	t.Cleanup(func() {
		err := s.engine.Remove(context.Background(), box.ID(), true)
		if err != nil && !fault.Is(err, fault.BoxNotFound) {
			t.Error("remove: ", err)
		}
	})
	return box, rec
}

// root gives a box the root file system of the suite.
func (s *suite) root(o *options.Box) { o.RootfsPath, o.Image = s.Rootfs, s.Plain }

// set gives a box the image with settings.
func (s *suite) set(o *options.Box) {
	o.RootfsPath, o.Image = "", cmp.Or(s.Set, "image")
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
