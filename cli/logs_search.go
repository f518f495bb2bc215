package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/client"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// logFlags are the flags of the verbs that filter rows.
type logFlags struct {
	from, to string
	client.LogFilter
}

func (f *logFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.from, "from", "1h", "only rows from this `TIME` on: RFC 3339, or how long ago, such as 90m or 2d")
	fs.StringVar(&f.to, "to", "0s", "only rows before this `TIME`")
	fs.StringVar(&f.Service, "service", "", "only rows of the service `NAME`; that of a box is box-ID")
	fs.StringVar(&f.Severity, "severity", "", "only rows of this `LEVEL`: TRACE, DEBUG, INFO, WARN, ERROR or FATAL")
	fs.StringVar(&f.Text, "text", "", "only rows that contain `TEXT`, in upper or lower case")
	fs.StringVar(&f.TraceID, "trace", "", "only rows of the trace `ID`")
	fs.IntVarP(&f.Limit, "limit", "n", 100, "print at most this many rows, up to 10000")
}

// filter parses the times of the flags and returns the filter. Errors:
// InvalidArgument.
func (f *logFlags) filter() (client.LogFilter, error) {
	now := time.Now()
	var err error
	if f.From, err = moment("--from", f.from, now); err == nil {
		f.To, err = moment("--to", f.to, now)
	}
	return f.LogFilter, err
}

func moment(flag, s string, now time.Time) (time.Time, error) {
	t, ok := document.Moment(s, now)
	if !ok {
		return t, fault.New(fault.InvalidArgument, "%s %s: want a time such as 2026-01-31T00:00:00Z, or how long ago, such as 90m or 2d", flag, s)
	}
	return t, nil
}

func (a *app) logsSearchCmd() *cobra.Command {
	var f logFlags
	var follow bool
	cmd := &cobra.Command{
		Use:   "search [FLAGS] [-f]",
		Short: "Print the newest rows of the log table, oldest first",
		Args:  cobra.NoArgs,
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new rows as they come")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := f.filter()
		if err != nil {
			return err
		}
		return a.withServer(cmd.Context(), func(c *client.Client) error {
			if follow {
				return a.followLogs(cmd.Context(), c, filter)
			}
			r, err := c.SearchLogs(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if a.asJSON() {
				return writeJSON(a.Out, r)
			}
			return a.printRows(r)
		})
	}
	return cmd
}

// To follow means to ask again and again: the log table notifies nobody.
const (
	followEvery = 2 * time.Second
	// followLag is how late a row may arrive and still be printed.
	followLag = 3 * time.Second
	followMax = 10000 // rows that one query returns
)

// followLogs prints the rows that are there, and then new ones as they come.
func (a *app) followLogs(ctx context.Context, c *client.Client, f client.LogFilter) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		f.To = time.Now().Add(-followLag)
		if f.From.Before(f.To) {
			r, err := c.SearchLogs(ctx, f)
			if err != nil {
				return err
			}
			if err := a.printRows(r); err != nil {
				return err
			}
			if f.Limit == followMax && len(r.Rows) == followMax {
				fmt.Fprintln(a.Err, "sandbox: more rows came than can be read at once: some before these are left out")
			}
			f.From, f.Limit = f.To, followMax
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, ctx.Err(), "follow the log table")
		}
	}
}

// printRows prints rows, oldest first, each on a line, or as a document with -o
// json.
func (a *app) printRows(r client.QueryResult) error {
	for _, row := range slices.Backward(r.Rows) {
		if a.asJSON() {
			if err := json.NewEncoder(a.Out).Encode(row); err != nil {
				return err
			}
			continue
		}
		level := cell(row["SeverityText"])
		if level == "" {
			level = "-"
		}
		if _, err := fmt.Fprintf(a.Out, "%s %s %s %s\n", cell(row["Timestamp"]), printable(level), printable(cell(row["ServiceName"])), printable(cell(row["Body"]))); err != nil {
			return err
		}
	}
	return nil
}
