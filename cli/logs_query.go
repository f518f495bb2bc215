package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"sandbox/client"
	"sandbox/core/fault"
)

func (a *app) logsQueryCmd() *cobra.Command {
	var pairs []string
	cmd := &cobra.Command{
		Use:   "query SQL [-p NAME=VALUE]...",
		Short: "Run one SELECT over the table otel_logs",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().StringArrayVarP(&pairs, "parameter", "p", nil, "`NAME=VALUE` for the placeholder {NAME:Type} (repeatable)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		parameters := map[string]any{}
		for _, pair := range pairs {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return fault.New(fault.InvalidArgument, "-p %s: want NAME=VALUE", pair)
			}
			parameters[name] = value
		}
		return a.askLogs(cmd.Context(), func(c *client.Client) (client.QueryResult, error) {
			return c.QueryLogs(cmd.Context(), args[0], parameters)
		})
	}
	return cmd
}

func (a *app) logsCountCmd() *cobra.Command {
	var f logFlags
	var g client.LogGrouping
	cmd := &cobra.Command{
		Use:   "count [--by service,severity,time] [FLAGS]",
		Short: "Count the rows of the log table in groups",
		Args:  cobra.NoArgs,
	}
	f.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&g.GroupBy, "by", []string{"service"}, "what to group by: a `LIST` of service, severity and time")
	cmd.Flags().IntVar(&g.BucketSeconds, "bucket", 300, "`SECONDS` of one group of times: 60, 300, 3600 or 86400")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if g.LogFilter, err = f.filter(); err != nil {
			return err
		}
		return a.askLogs(cmd.Context(), func(c *client.Client) (client.QueryResult, error) {
			return c.CountLogs(cmd.Context(), g)
		})
	}
	return cmd
}

// askLogs runs a query on the server and prints the result.
func (a *app) askLogs(ctx context.Context, ask func(*client.Client) (client.QueryResult, error)) error {
	return a.withServer(ctx, func(c *client.Client) error {
		r, err := ask(c)
		if err != nil {
			return err
		}
		return a.show(r, nil, resultTable(r))
	})
}

// resultTable returns a result as a table, with the names of its columns on top.
func resultTable(r client.QueryResult) [][]any {
	var head []any
	for _, c := range r.Columns {
		head = append(head, c.Name)
	}
	return append([][]any{head}, rows(r.Rows, func(row map[string]json.RawMessage) []any {
		var cells []any
		for _, c := range r.Columns {
			cells = append(cells, cell(row[c.Name]))
		}
		return cells
	})...)
}

// cell returns a value for a table: text without quotes, the rest as JSON.
func cell(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && !bytes.Equal(v, []byte("null")) {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}
