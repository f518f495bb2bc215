package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/fault"
)

func (a *app) logsCmd() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs BOX [EXEC] [-f]",
		Short: "Print the output of a command: the last one started, or EXEC",
		Long: `Print the output of a command in a box: the last one that was started, or EXEC
('exec -d' prints its id). Only a daemon keeps output, but that of the main command,
which is kept without one too.

The commands below read the log table of the server, which holds the output of
all boxes and all other logs that were sent to the server. If a box has the name
of one of these commands, use the box's id.`,
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the command ends")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if _, remote, err := a.target.Server(ctx); err == nil && !remote {
			return a.with(ctx, false, func(on backend.Boxes) error { return a.mainLog(ctx, on, args, follow) })
		}
		return a.withServer(ctx, func(c *client.Client) error {
			e, err := execOf(ctx, c, args)
			if err != nil {
				return err
			}
			return a.printLog(ctx, c, e, follow)
		})
	}
	cmd.AddCommand(a.logsQueryCmd(), a.logsSearchCmd(), a.logsCountCmd())
	return a.completeBoxes(cmd, 1, "")
}

// mainLog prints what the main command of a box of this host has printed, its last run or
// the one that the arguments name. Errors: Unavailable (it is another command).
func (a *app) mainLog(ctx context.Context, on backend.Boxes, args []string, follow bool) error {
	box, err := on.Box(ctx, args[0])
	if err != nil {
		return err
	}
	id := ""
	if box.State.Command != nil {
		id = box.State.Command.ExecID
	}
	if len(args) == 2 {
		id = args[1]
	}
	c, err := on.Observe(ctx, box.ID, id)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "without a daemon only the output of a box's main command is kept")
	}
	defer func() { _ = c.Close() }() // it was only read
	e, err := on.Exec(ctx, box.ID, id)
	if err != nil {
		return err
	}
	return a.printMain(ctx, c, deref(e.StdoutBytes)+deref(e.StderrBytes), follow || e.FinishedAt != nil)
}

// printMain prints so many bytes of what a command has printed, or all of it to its end.
func (a *app) printMain(ctx context.Context, c backend.Command, there int64, toEnd bool) error {
	if there == 0 && !toEnd {
		return nil
	}
	r, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	buf := make([]byte, core.OutputBuffer)
	for seen := int64(0); toEnd || seen < there; {
		n, stderr, err := r.Read(buf)
		var missed client.Missed
		switch {
		case errors.As(err, &missed):
			seen = missed.Stdout + missed.Stderr
			fmt.Fprintf(a.Err, "sandbox: output was dropped here\n")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := a.printPiece(stderr, buf[:n]); err != nil {
			return err
		}
		seen += int64(n)
	}
	return nil
}

// printPiece prints a piece of output, with -o json as a document.
func (a *app) printPiece(stderr bool, p []byte) error {
	if !a.asJSON() {
		return a.write(stderr, p)
	}
	l := api.Log{Stream: api.Stdout}
	if stderr {
		l.Stream = api.Stderr
	}
	if l.Data, l.Encoding = api.Text(p); l.Encoding == api.UTF8 {
		l.Encoding = ""
	}
	return writeJSON(a.Out, l)
}

// execOf returns the exec that the arguments name, or else the box's last one.
func execOf(ctx context.Context, c *client.Client, args []string) (api.Exec, error) {
	if len(args) == 2 {
		return c.Exec(ctx, args[0], args[1])
	}
	execs, err := c.Execs(ctx, args[0])
	if err == nil && len(execs) == 0 {
		err = fault.New(fault.ExecNotFound, "box %q has run no command yet", args[0])
	}
	if err != nil {
		return api.Exec{}, err
	}
	return c.Exec(ctx, args[0], execs[0].ID)
}

// printLog prints the output that is there, and with follow also what comes until
// the exec ends. With -o json each piece is a document, and so is the end.
func (a *app) printLog(ctx context.Context, c *client.Client, e api.Exec, follow bool) error {
	there, seen := deref(e.StdoutBytes)+deref(e.StderrBytes), int64(0)
	toEnd := follow || e.FinishedAt != nil
	if there > 0 && !toEnd {
		there = whole(ctx, c, e)
	}
	if there == 0 && !toEnd {
		return nil
	}
	for event, err := range c.Events(ctx, e.BoxID, e.ID, 0) {
		if err == nil || event.Exit != nil { // a command that was lost has a log like any other
			seen, err = a.printEvent(event, seen)
		}
		if err != nil {
			return err
		}
		if seen >= there && !toEnd {
			return nil
		}
	}
	return nil
}

// whole returns how many bytes of the output that is there have come as events: all but
// those of a character at the end of a stream that is not whole yet. Events do not tell
// that they end before it, so that the last bytes of each stream are looked at. Where that
// fails, as behind a proxy without WebSockets, all bytes count.
func whole(ctx context.Context, c *client.Client, e api.Exec) int64 {
	sizes := [2]int64{deref(e.StdoutBytes), deref(e.StderrBytes)}
	all := sizes[0] + sizes[1]
	from := [2]int64{max(0, sizes[0]-utf8.UTFMax+1), max(0, sizes[1]-utf8.UTFMax+1)}
	s, err := c.Attach(ctx, e.BoxID, e.ID, client.AttachOptions{AfterStdout: from[0], AfterStderr: from[1], Observe: true})
	if err != nil {
		return all
	}
	defer func() { _ = s.Close() }()
	var tails [2][]byte
	buf := make([]byte, core.OutputBuffer)
	for from[0]+int64(len(tails[0])) < sizes[0] || from[1]+int64(len(tails[1])) < sizes[1] {
		n, stderr, err := s.Read(ctx, buf)
		switch {
		case err != nil: // the output has ended, or was dropped
			return all
		case stderr:
			tails[1] = append(tails[1], buf[:n]...)
		default:
			tails[0] = append(tails[0], buf[:n]...)
		}
	}
	for i, tail := range tails {
		all -= int64(api.Partial(tail[:sizes[i]-from[i]]))
	}
	return all
}

// printEvent prints an event that comes behind a number of bytes of output. It
// returns how many there are with it.
func (a *app) printEvent(e api.Event, seen int64) (int64, error) {
	switch {
	case e.Gap != nil:
		fmt.Fprintf(a.Err, "sandbox: output was dropped here: events %d to %d\n", e.Gap.From, e.Gap.To)
		return e.Gap.StdoutFrom + e.Gap.StderrFrom, nil
	case e.Log != nil:
		return a.printOutput(e.Log, seen)
	case e.Exit != nil && a.asJSON():
		return seen, writeJSON(a.Out, e.Exit)
	}
	return seen, nil
}

func (a *app) printOutput(l *api.Log, seen int64) (int64, error) {
	data, err := l.Bytes()
	switch {
	case err != nil: // the client has looked at it already
	case a.asJSON():
		err = writeJSON(a.Out, l)
	default:
		err = a.write(l.Stream == api.Stderr, data)
	}
	return seen + int64(len(data)), err
}
