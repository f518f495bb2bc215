package conformance_test

import (
	"runtime"
	"testing"
)

// readLacking reads the cases that an ordinary user does not have, each with the reason, by
// their rows and names: rootless.yaml. They have to fail, so that the list stays true.
func readLacking(t *testing.T) (reasons map[string]string) {
	t.Helper()
	readYAML(t, "rootless.yaml", &reasons)
	return reasons
}

// judgeOf returns what a case reports its failures to, and what runs it. That is t itself,
// unless the case has to fail.
func (h *host) judgeOf(t *testing.T, c *testCase) (tb testing.TB, run func(steps func())) {
	t.Helper()
	reason := h.lacking[c.Row+"/"+c.Name]
	if !*rootless || reason == "" {
		return t, func(steps func()) { steps() }
	}
	l := &lack{TB: t}
	return l, func(steps func()) {
		done := make(chan struct{})
		go func() { // which FailNow ends
			defer close(done)
			steps()
		}()
		<-done
		if !l.failed {
			t.Errorf("it works without root: take it out of rootless.yaml, which says %q", reason)
		}
	}
}

// lack is the judge of a case that has to fail.
type lack struct {
	testing.TB
	failed bool
}

func (l *lack) Failed() bool { return l.failed }

func (l *lack) Error(args ...any) {
	l.Log(args...)
	l.failed = true
}

func (l *lack) Errorf(format string, args ...any) {
	l.Logf(format, args...)
	l.failed = true
}

func (l *lack) FailNow() {
	l.failed = true
	runtime.Goexit()
}

func (l *lack) Fatal(args ...any) {
	l.Log(args...)
	l.FailNow()
}

func (l *lack) Fatalf(format string, args ...any) {
	l.Logf(format, args...)
	l.FailNow()
}
