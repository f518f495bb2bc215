package soak_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// exec starts a command. A start whose answer was lost may have begun one, too:
// it ends with its box.
func (w *worker) exec(box string, o options.Exec) (e api.Exec, err error) {
	err = w.insist(execute, box, func() (err error) {
		e, err = w.c.StartExec(w.ctx, box, o)
		return err
	})
	w.execs.Add(1)
	return e, err
}

func script(text string) options.Exec { return options.Exec{Cmd: []string{"sh", "-c", text}} }

// output follows a command's events by readers that are cut.
func (w *worker) output(box string) error {
	want, from := numbered(w.rng, fmt.Sprintf("%s.%d.%d", w.name, w.made, w.rng.IntN(1000))), time.Now()
	e, err := w.exec(box, script(want.script))
	if err != nil {
		return err
	}
	return w.follow(box, follower{e.ID, want, from}, true)
}

// checker compares the output of a command.
func (w *worker) checker(f follower) *checker {
	return &checker{want: f.want, full: func() bool { return w.wasFull(f.from) }}
}

// follow reads a command's events to the end and compares them. Its readers are
// cut if that is asked for, and go on behind the last event that they had.
func (w *worker) follow(box string, f follower, cut bool) error {
	c := w.checker(f)
	for c.exit == nil {
		pieces := -1
		if cut {
			pieces = 1 + w.rng.IntN(20)
		}
		err := w.insist(read, box+" "+f.id, func() error { return w.events(box, f.id, c, pieces) })
		if err != nil {
			return err
		}
	}
	if cut {
		w.done = append(w.done, f)
	}
	return w.ended(box, f, c)
}

// events reads up to so many events; -1 means all.
func (w *worker) events(box, id string, c *checker, pieces int) error {
	for e, err := range w.c.Events(w.ctx, box, id, c.after) {
		if err == nil || e.Exit != nil { // an end without an exit code comes with an error
			err = errors.Join(err, c.event(e))
		}
		if err != nil {
			return err
		}
		if pieces--; pieces == 0 && c.exit == nil {
			w.cuts.Add(1)
			break
		}
	}
	return nil
}

// ended compares a command's end with what is wanted: all of its output, its
// exit code, and its record.
func (w *worker) ended(box string, f follower, c *checker) error {
	w.bytes.Add(int64(c.got[0] + c.got[1]))
	w.dropped.Add(int64(c.dropped))
	w.lost.Add(c.missing())
	if c.missing() > 0 {
		return w.fail(read, box+" "+f.id, fmt.Errorf("%d of %d and %d of %d bytes came, end %+v",
			c.got[0], len(f.want.out[0]), c.got[1], len(f.want.out[1]), c.exit))
	}
	return w.insist(read, box+" "+f.id, func() error {
		e, err := w.c.Exec(w.ctx, box, f.id)
		if err != nil {
			return err
		}
		if e.ExitCode == nil || *e.ExitCode != f.want.code || *e.StdoutBytes != int64(c.got[0]) || *e.StderrBytes != int64(c.got[1]) {
			return &wrongOutput{fmt.Sprintf("it ended as %s, exit code %v, with %v and %v bytes", e.Status, e.ExitCode, e.StdoutBytes, e.StderrBytes)}
		}
		return nil
	})
}

// reread wants the whole output of a command whose end was told.
func (w *worker) reread(box string, f follower) { _ = w.follow(box, f, false) }

// files puts a file into a box and replaces it, takes it out, and has a command
// print it to clients that are cut.
func (w *worker) files(box string) error {
	old, next := keyed(w.rng, 1<<20), keyed(w.rng, 3<<20)
	if err := w.upload(box, "/data/file", old); err != nil {
		return err
	}
	if err := w.upload(box, "/data/file", next); err != nil {
		return err
	}
	err := w.insist(download, box, func() error {
		d, err := w.c.Download(w.ctx, box, options.Download{Path: "/data/file"})
		if err != nil {
			return err
		}
		defer d.Close()
		got, err := io.ReadAll(d)
		if err == nil && sha256.Sum256(got) != sha256.Sum256(next) {
			return &wrongOutput{fmt.Sprintf("a file of %d bytes came as %d others", len(next), len(got))}
		}
		w.bytes.Add(int64(len(got)))
		return err
	})
	if err != nil {
		return err
	}
	want, from := wanted{out: [2]string{string(next), ""}}, time.Now()
	e, err := w.exec(box, script("cat /data/file"))
	if err != nil {
		return err
	}
	return w.attached(box, follower{e.ID, want, from})
}

func (w *worker) upload(box, dest string, content []byte) error {
	return w.insist(upload, box, func() error {
		_, err := w.c.Upload(w.ctx, box, client.Upload{Dest: dest}, bytes.NewReader(content))
		return err
	})
}

// attached follows a command by attached clients that are cut, and go on at the
// offset that they had.
func (w *worker) attached(box string, f follower) error {
	c, over := w.checker(f), false
	for !over {
		most := 1 + w.rng.IntN(1<<20)
		err := w.session(box, f.id, func() [2]int { return c.got }, func(_ *client.Session, stderr bool, p []byte) error {
			stream := 0
			if stderr {
				stream = 1
			}
			if err := c.take(stream, p); err != nil {
				return err
			}
			if most -= len(p); most < 0 {
				return errCut
			}
			return nil
		}, &over)
		if err != nil {
			return err
		}
	}
	w.done = append(w.done, f)
	return w.ended(box, f, c)
}

// session attaches to a command, behind what came, until its end or until sink
// returns errCut. over tells that the command has ended.
func (w *worker) session(box, id string, got func() [2]int, sink func(s *client.Session, stderr bool, p []byte) error, over *bool) error {
	return w.insist(attach, box+" "+id, func() error {
		s, err := w.c.Attach(w.ctx, box, id, client.AttachOptions{AfterStdout: int64(got()[0]), AfterStderr: int64(got()[1])})
		if fault.Is(err, fault.InvalidState) {
			w.pause(nil) // the client that was cut is still attached
			return nil
		}
		if err != nil {
			return err
		}
		defer s.Close()
		if err := sink(s, false, nil); err != nil {
			return err
		}
		_, err = s.Stream(w.ctx, func(stderr bool, p []byte) error { return sink(s, stderr, p) })
		if errors.Is(err, errCut) {
			w.cuts.Add(1)
			return nil
		}
		*over = err == nil
		return err
	})
}

// echo sends lines to a command that sends them back, by clients that are cut. A
// line that was sent and not seen again is sent again, and may come twice then.
func (w *worker) echo(box string) error {
	e, err := w.exec(box, options.Exec{Cmd: []string{"cat"}, Stdin: true})
	if err != nil {
		return err
	}
	c := &echoes{lines: 5 + w.rng.IntN(30), key: w.name}
	for over := false; !over; {
		c.left = 1 + w.rng.IntN(12)
		if err := w.session(box, e.ID, func() [2]int { return [2]int{c.bytes, 0} }, c.take, &over); err != nil {
			return err
		}
	}
	if c.seen != c.lines {
		w.lost.Add(1)
		return w.fail(attach, box+" "+e.ID, fmt.Errorf("%d of %d lines came back", c.seen, c.lines))
	}
	return nil
}

// echoes is what an echo has sent and got.
type echoes struct {
	key         string
	lines, seen int // how many are wanted, and came
	sent        int // how often the next line was sent
	twice       int // copies of the last line that may still come
	left        int // lines until the cut
	bytes       int
	part        string
}

func (c *echoes) line(n int) string { return fmt.Sprintf("%s line %d", c.key, n) }

// take takes a piece of output, and sends the next line behind each that came
// back. It is called without output when a client has attached.
func (c *echoes) take(s *client.Session, _ bool, p []byte) error {
	if p == nil {
		c.send(s)
		return nil
	}
	c.bytes += len(p)
	c.part += string(p)
	for {
		line, rest, whole := strings.Cut(c.part, "\n")
		if !whole {
			return nil
		}
		c.part = rest
		switch {
		case line == c.line(c.seen) && c.sent > 0:
			c.seen, c.twice, c.sent = c.seen+1, c.sent-1, 0
		case line == c.line(c.seen-1) && c.twice > 0:
			c.twice--
			continue
		default:
			return &wrongOutput{fmt.Sprintf("the echo %q, want %q", line, c.line(c.seen))}
		}
		if c.left--; c.left == 0 && c.seen < c.lines {
			return errCut
		}
		c.send(s)
	}
}

// send sends the next line, or the end. Whether the connection was lost or the command
// has ended, who reads is told: the failure of a write does not say which of them.
func (c *echoes) send(s *client.Session) {
	if c.seen == c.lines {
		_ = s.CloseInput()
		return
	}
	c.sent++
	_, _ = s.Write([]byte(c.line(c.seen) + "\n"))
}

// terminal types into a shell. Its end hangs the shell up, so that a terminal
// whose connection was lost is begun anew.
func (w *worker) terminal(box string) error {
	a, b := w.rng.IntN(10000), w.rng.IntN(10000)
	return w.insist(terminal, box, func() error {
		s, err := w.c.Terminal(w.ctx, box, client.TerminalOptions{Shell: "/bin/sh"})
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := fmt.Fprintf(s, "echo sum $((%d+%d)); exit 7\n", a, b); err != nil {
			return err
		}
		var shown strings.Builder
		end, err := s.Stream(w.ctx, func(_ bool, p []byte) error {
			shown.Write(p)
			return nil
		})
		if err == nil && (*end.ExitCode != 7 || !strings.Contains(shown.String(), fmt.Sprint("sum ", a+b))) {
			return &wrongOutput{fmt.Sprintf("a terminal showed %q and ended with %d", shown.String(), *end.ExitCode)}
		}
		return err
	})
}

// restart stops a box and starts it again, and wants its disk to be as it was.
func (w *worker) restart(box string) error {
	content := keyed(w.rng, 64<<10)
	if err := w.upload(box, "/kept", content); err != nil {
		return err
	}
	from := time.Now()
	e, err := w.exec(box, script("echo on; sleep 1000"))
	if err != nil {
		return err
	}
	if err := w.change(box, stop, api.Stopped, func(ctx context.Context) error {
		_, err := w.c.StopBox(ctx, box, 0)
		return err
	}); err != nil {
		return err
	}
	if err := w.cutShort(box, e.ID, from, api.ReasonBoxStopped); err != nil {
		return err
	}
	if err := w.change(box, start, api.Running, func(ctx context.Context) error {
		_, err := w.c.StartBox(ctx, box)
		return err
	}); err != nil {
		return err
	}
	return w.insist(download, box, func() error {
		d, err := w.c.Download(w.ctx, box, options.Download{Path: "/kept"})
		if err != nil {
			return err
		}
		defer d.Close()
		got, err := io.ReadAll(d)
		if err == nil && !bytes.Equal(got, content) {
			return &wrongOutput{fmt.Sprintf("a file of a box that was stopped has %d bytes, want %d", len(got), len(content))}
		}
		return err
	})
}

// change stops or starts a box. A try that failed may have done it, or may be
// finished by the next shim.
func (w *worker) change(box string, o op, want api.BoxStatus, call func(context.Context) error) error {
	for again := false; ; again = true {
		err := w.insist(o, box, func() error {
			err := call(w.ctx)
			if again && fault.Is(err, fault.InvalidState) {
				return nil
			}
			return err
		}, fault.InvalidState)
		if err != nil {
			return err
		}
		var got api.Box
		err = w.insist(read, box, func() (err error) {
			got, err = w.c.Box(w.ctx, box)
			return err
		})
		switch {
		case err != nil || got.Status == want:
			return err
		case got.Status == api.Failed:
			return w.fail(o, box, fmt.Errorf("it has failed: %v", got.Error))
		case !w.pause(nil):
			return errGaveUp
		}
	}
}

// canceled cancels a command.
func (w *worker) canceled(box string) error {
	from := time.Now()
	e, err := w.exec(box, script("echo on; sleep 1000"))
	if err != nil {
		return err
	}
	err = w.insist(cancel, box+" "+e.ID, func() error {
		_, err := w.c.CancelExec(w.ctx, box, e.ID, 0)
		return err
	}, fault.InvalidState)
	if err != nil {
		return err
	}
	return w.cutShort(box, e.ID, from, api.ReasonCanceled)
}

// cutShort wants a command that says "on" and sleeps to have ended for a reason.
func (w *worker) cutShort(box, id string, from time.Time, reason api.Reason) error {
	c := w.checker(follower{id, wanted{out: [2]string{"on\n", ""}}, from})
	for c.exit == nil {
		if err := w.insist(read, box+" "+id, func() error { return w.events(box, id, c, -1) }); err != nil {
			return err
		}
	}
	if c.exit.Reason == nil || *c.exit.Reason != reason {
		return w.fail(read, box+" "+id, fmt.Errorf("it ended as %s, reason %v, want %s", c.exit.Status, c.exit.Reason, reason))
	}
	return nil
}

// once runs a command in a box of its own.
func (w *worker) once(string) error {
	want := numbered(w.rng, w.name)
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB = "busybox", 1, 64
	return w.insist(runOnce, w.name, func() error {
		r, err := w.c.Run(w.ctx, client.RunRequest{Box: o, Exec: script(want.script)})
		if err == nil && (r.Stdout != want.out[0] || r.Stderr != want.out[1] || *r.ExitCode != want.code) {
			return &wrongOutput{fmt.Sprintf("a run printed %d and %d bytes, want %d and %d", len(r.Stdout), len(r.Stderr), len(want.out[0]), len(want.out[1]))}
		}
		return err
	})
}
