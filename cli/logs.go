package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sandbox/client"
	"sandbox/core/fault"
)

func (a *app) logsCmd() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs BOX [EXEC] [-f]",
		Short: "Print the output of a command: the last one started, or EXEC",
		Long: `Print the output of a command in a box: the last one that was started, or EXEC
('exec -d' prints its id). Only a daemon keeps output.

The verbs below ask the log table of the server, in which the output of all
boxes is, and whatever else was sent there: a box that is called like one of
them is named by its id.`,
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the command ends")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
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

// execOf returns the exec that the arguments name.
func execOf(ctx context.Context, c *client.Client, args []string) (client.Exec, error) {
	if len(args) == 2 {
		return c.Exec(ctx, args[0], args[1])
	}
	execs, err := c.Execs(ctx, args[0])
	if err == nil && len(execs) == 0 {
		err = fault.New(fault.ExecNotFound, "box %q has run no command yet", args[0])
	}
	if err != nil {
		return client.Exec{}, err
	}
	return c.Exec(ctx, args[0], execs[0].ID)
}

// printLog prints the output that is there, and with follow what is to come.
// With -o json each piece is a document, and the end too.
func (a *app) printLog(ctx context.Context, c *client.Client, e client.Exec, follow bool) error {
	there, seen := deref(e.StdoutBytes)+deref(e.StderrBytes), int64(0)
	toEnd := follow || e.FinishedAt != nil
	if there == 0 && !toEnd {
		return nil
	}
	for event, err := range c.Events(ctx, e.BoxID, e.ID, 0) {
		if err == nil {
			err = a.printEvent(event)
		}
		if err != nil {
			return err
		}
		switch {
		case event.Log != nil:
			seen += int64(len(event.Log.Data))
		case event.Gap != nil:
			seen = event.Gap.StdoutFrom + event.Gap.StderrFrom
		}
		if seen >= there && !toEnd {
			return nil
		}
	}
	return nil
}

func (a *app) printEvent(e client.Event) error {
	switch {
	case e.Gap != nil:
		fmt.Fprintf(a.Err, "sandbox: output was dropped here: events %d to %d\n", e.Gap.From, e.Gap.To)
	case e.Log != nil && a.asJSON():
		return writeJSON(a.Out, logLine(e.Log))
	case e.Log != nil:
		return a.write(e.Log.Stderr, e.Log.Data)
	case e.Exit != nil && a.asJSON():
		return writeJSON(a.Out, e.Exit)
	}
	return nil
}

// logLine is a piece of output as JSON shows it.
func logLine(l *client.Log) map[string]any {
	line := map[string]any{"seq": l.Seq, "stream": "stdout"}
	if l.Stderr {
		line["stream"] = "stderr"
	}
	data, encoding := text(l.Data)
	line["data"] = data
	if encoding == "base64" {
		line["encoding"] = encoding
	}
	return line
}
