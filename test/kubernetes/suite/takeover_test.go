//go:build kubernetes

package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// told is what a client has read of an exec by events.
type told struct {
	text strings.Builder
	from int64 // the byte of stdout that text begins at
	gaps int
	last int64 // number of the last event
	exit *api.Exit
}

// read reads the events of an exec behind number after, until enough says so or the exit.
func (r *told) read(ctx context.Context, c *client.Client, box, id string, after int64, enough func() bool) error {
	for event, err := range c.Events(ctx, box, id, after) {
		switch {
		case err != nil:
			return err
		case event.Gap != nil:
			r.gaps, r.from, r.last = r.gaps+1, event.Gap.StdoutFrom, event.Gap.To
		case event.Exit != nil:
			r.exit = event.Exit
		default:
			p, err := event.Log.Bytes()
			if err != nil {
				return err
			}
			_, _ = r.text.Write(p)
			r.last = event.Log.Seq
		}
		if enough() {
			return nil
		}
	}
	return nil
}

func never() bool { return false }

// again calls do until it is no conflict any more: a server that was killed seems to be
// there for a moment.
func again(t *testing.T, do func() error) {
	t.Helper()
	for began := time.Now(); ; {
		err := do()
		if err == nil {
			t.Logf("the other server serves it after %v", time.Since(began))
			return
		}
		if !fault.Is(err, fault.InvalidState) || time.Since(began) > 30*time.Second {
			t.Fatal(err)
		}
	}
}

// TestTakenOver kills a server while a command prints, and has another one go on with it:
// what comes is what was printed, in its place, from where the reported gap ends.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	a, b := serve(t, ns, newHome(t)), serve(t, ns, newHome(t))
	box, err := a.CreateBox(t.Context(), plain())
	if err != nil {
		t.Fatal(err)
	}
	const parts, lines = 50, 10_000
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do seq $((i*%d+1)) $((i*%[2]d+%[2]d)); i=$((i+1)); sleep 0.05; done; exit 3", parts, lines)
	e, err := a.StartExec(t.Context(), box.ID, options.Exec{Cmd: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for i := range parts * lines {
		_, _ = fmt.Fprintln(&all, i+1)
	}
	want := all.String()

	// While its server lives, the other one knows it, and does not touch it.
	before := &told{}
	if err := before.read(t.Context(), a.Client, box.ID, e.ID, 0, func() bool { return before.text.Len() > len(want)/4 }); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Exec(t.Context(), box.ID, e.ID); err != nil || got.Status != api.ExecRunning {
		t.Errorf("%+v, %v", got, err)
	}
	listed, err := b.Execs(t.Context(), box.ID)
	if err != nil || !slices.ContainsFunc(listed, func(x api.Exec) bool { return x.ID == e.ID }) {
		t.Errorf("execs %+v, %v", listed, err)
	}
	_, err = b.Attach(t.Context(), box.ID, e.ID, client.AttachOptions{})
	says(t, err, fault.InvalidState, "another server")
	says(t, (&told{}).read(t.Context(), b.Client, box.ID, e.ID, 0, never), fault.InvalidState, "another server")

	a.kill()
	// One client asks for all of it, another goes on where it was.
	whole, rest := &told{}, &told{from: int64(before.text.Len())}
	again(t, func() error { return whole.read(t.Context(), b.Client, box.ID, e.ID, 0, never) })
	if err := rest.read(t.Context(), b.Client, box.ID, e.ID, before.last, never); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*told{"from the beginning": whole, "from where it was": rest} {
		if got.from > int64(len(want)) || got.text.String() != want[got.from:] {
			t.Errorf("%s: %d bytes from %d on are not what was printed", name, got.text.Len(), got.from)
		}
		if got.gaps != 1 || got.exit == nil || got.exit.ExitCode == nil || *got.exit.ExitCode != 3 {
			t.Errorf("%s: %d gaps, exit %+v", name, got.gaps, got.exit)
		}
		t.Logf("%s: bytes %d to %d of %d; the client of the killed server had %d", name, got.from, len(want), len(want), before.text.Len())
	}
	from := whole.from + 1000
	session, err := b.Attach(t.Context(), box.ID, e.ID, client.AttachOptions{AfterStdout: from})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var attached strings.Builder
	if _, err := session.Stream(t.Context(), func(_ bool, p []byte) error { _, _ = attached.Write(p); return nil }); err != nil || attached.String() != want[from:] {
		t.Errorf("attached behind byte %d: %d bytes, %v", from, attached.Len(), err)
	}
	if got, err := b.Exec(t.Context(), box.ID, e.ID); err != nil || *got.ExitCode != 3 || *got.StdoutBytes != int64(len(want)) {
		t.Errorf("%+v, %v", got, err)
	}

	// The first server comes back, and finds that another has served the exec.
	a = serve(t, ns, a.home)
	if got, err := a.Exec(t.Context(), box.ID, e.ID); err != nil || got.Status != api.ExecFailed || *got.ExitCode != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	first := &told{}
	if err := first.read(t.Context(), a.Client, box.ID, e.ID, 0, never); err != nil {
		t.Fatal(err)
	}
	if first.gaps != 1 || first.exit == nil || !strings.HasPrefix(want, first.text.String()) || first.text.Len() < before.text.Len() {
		t.Errorf("the first server has %d bytes, %d gaps, exit %+v", first.text.Len(), first.gaps, first.exit)
	}
}

// TestTakenOverInput has another server give input and signals to the exec of a killed one.
func TestTakenOverInput(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	a, b := serve(t, ns, newHome(t)), serve(t, ns, newHome(t))
	box, err := a.CreateBox(t.Context(), plain())
	if err != nil {
		t.Fatal(err)
	}
	// A signal ends the first loop, since read returns; the end of the input the second.
	script := `loop() { while read line; do echo "got $line"; done; }; trap 'echo told' USR1; echo ready; loop; loop; echo end`
	e, err := a.StartExec(t.Context(), box.ID, options.Exec{Cmd: []string{"sh", "-c", script}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteStdin(t.Context(), box.ID, e.ID, strings.NewReader("one\n")); err != nil {
		t.Fatal(err)
	}
	before := &told{}
	if err := before.read(t.Context(), a.Client, box.ID, e.ID, 0, func() bool { return before.text.String() == "ready\ngot one\n" }); err != nil {
		t.Fatal(err)
	}
	a.kill()
	again(t, func() error {
		_, err := b.WriteStdin(t.Context(), box.ID, e.ID, strings.NewReader("two\n"))
		return err
	})
	after := &told{}
	if err := after.read(t.Context(), b.Client, box.ID, e.ID, 0, func() bool { return strings.HasSuffix(after.text.String(), "got two\n") }); err != nil {
		t.Fatal(err)
	}
	// The first server comes back, and does not take it away.
	a = serve(t, ns, a.home)
	if got, err := a.Exec(t.Context(), box.ID, e.ID); err != nil || got.Status != api.ExecRunning {
		t.Errorf("%+v, %v", got, err)
	}
	if listed, err := a.Execs(t.Context(), box.ID); err != nil || len(listed) != 1 || listed[0].Status != api.ExecRunning {
		t.Errorf("%+v, %v", listed, err)
	}
	says(t, (&told{}).read(t.Context(), a.Client, box.ID, e.ID, 0, never), fault.InvalidState, "another server")
	if _, err := b.SignalExec(t.Context(), box.ID, e.ID, "USR1"); err != nil {
		t.Error(err)
	}
	if err := after.read(t.Context(), b.Client, box.ID, e.ID, after.last, func() bool { return strings.HasSuffix(after.text.String(), "told\n") }); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CloseStdin(t.Context(), box.ID, e.ID); err != nil {
		t.Error(err)
	}
	if err := after.read(t.Context(), b.Client, box.ID, e.ID, after.last, never); err != nil {
		t.Fatal(err)
	}
	// So little of it is still in the box.
	if got := after.text.String(); got != "ready\ngot one\ngot two\ntold\nend\n" || after.from != 0 || after.exit == nil {
		t.Errorf("%q from byte %d, exit %+v", got, after.from, after.exit)
	}
}
