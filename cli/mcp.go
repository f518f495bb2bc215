package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/backend"
	"sandbox/client"
	"sandbox/mcp"
)

func (a *app) mcpCmd() *cobra.Command {
	limits := mcp.DefaultLimits()
	cmd := &cobra.Command{
		Use:   "mcp [FLAGS]",
		Short: "Offer boxes as tools to a language model, over MCP",
		Long: `Offer boxes as tools to a language model: a Model Context Protocol server on
standard input and output, which MCP clients start by themselves.

The tools make and remove boxes, run commands in them, and read and write their
files; where a daemon is used, one queries its logs. A client reaches the boxes
that it made, and those that --share names, and no other. Boxes that it made are
removed when it leaves; after kill -9 of this command, those that a server made
are left. The flags hold for all boxes and commands: clients can't change them.
A daemon offers the same tools under /v1/mcp.`,
		Example: `  sandbox mcp --image python --memory 1g --network None`,
		Args:    cobra.NoArgs,
	}
	mcpFlags(cmd.Flags(), &limits)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		return a.with(ctx, true, func(on backend.Boxes) error {
			s, err := mcp.New(mcp.Config{Boxes: on, Limits: limits, Logs: logsOf(on)})
			if err != nil {
				return err
			}
			return s.Serve(ctx, a.In, a.Out)
		})
	}
	return cmd
}

func mcpFlags(fs *pflag.FlagSet, l *mcp.Limits) {
	fs.StringVar(&l.Box.Image, "image", l.Box.Image, "`IMAGE` of boxes for which the client names none")
	fs.IntVar(&l.Box.CPUs, "cpus", l.Box.CPUs, "number of CPUs of a box, a whole number")
	fs.VarP((*mebibytes)(&l.Box.MemoryMiB), "memory", "m", "memory of a box in MiB, or with a unit")
	fs.IntVar(&l.Box.DiskSizeGB, "disk", 0, "disk size of a box in GB (0: disk_ceiling_gb of config.toml, else none)")
	fs.StringVar(&l.Box.Network, "network", l.Box.Network, "Isolated or None")
	fs.IntVar(&l.MaxBoxes, "max-boxes", l.MaxBoxes, "boxes that a client may have at a time")
	fs.Var((*seconds)(&l.Timeout), "timeout", "end a command after this time, unless the client names another")
	fs.Var((*seconds)(&l.MaxTimeout), "max-timeout", "the longest time that a client may name")
	fs.IntVar(&l.MaxOutput, "max-output", l.MaxOutput, "`BYTES` of one stream, file or log result that a reply has")
	fs.StringArrayVar(&l.Shared, "share", nil, "let the client use this `BOX` too, by this id or name (repeatable)")
}

// logsOf returns the log query of the server that has the boxes, or nil if none has.
func logsOf(on backend.Boxes) func(context.Context, string, map[string]any) (json.RawMessage, error) {
	server, ok := on.(interface {
		QueryLogs(ctx context.Context, sql string, parameters map[string]any) (client.QueryResult, error)
	})
	if !ok {
		return nil
	}
	return func(ctx context.Context, sql string, parameters map[string]any) (json.RawMessage, error) {
		r, err := server.QueryLogs(ctx, sql, parameters)
		if err != nil {
			return nil, err
		}
		return json.Marshal(r)
	}
}
