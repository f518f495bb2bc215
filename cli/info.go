package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandbox/core"
	"sandbox/core/local"
)

func (a *app) infoCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "info BOX",
		Short: "Show all that is known of a box",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, false, func(host *local.Host) error {
				box, err := host.Get(ctx, args[0])
				if err != nil {
					return err
				}
				rec, err := box.Record(ctx)
				if err != nil {
					return err
				}
				if a.asJSON() {
					return writeJSON(a.Out, rec.Info())
				}
				return writeTable(a.Out, describe(rec)...)
			})
		},
	}
}

// describe is a box for people: what is not set is left out.
func describe(rec core.Record) [][]any {
	o := rec.Options
	table := [][]any{
		{"id", rec.ID}, {"name", o.Name}, {"status", rec.State},
		{"image", o.Image}, {"rootfs", o.RootfsPath},
		{"cpus", o.CPUs}, {"memory", fmt.Sprintf("%d MiB", o.MemoryMiB)}, {"network", o.Network},
		{"removed on stop", o.AutoRemove}, {"user", o.User}, {"working dir", o.WorkingDir},
		{"created", when(&rec.CreatedAt)}, {"started", when(rec.StartedAt)}, {"stopped", when(rec.StoppedAt)},
		{"reason", rec.Reason},
	}
	if rec.PID != 0 {
		table = append(table, []any{"pid", rec.PID})
	}
	if o.DiskSizeGB != 0 {
		table = append(table, []any{"disk", fmt.Sprintf("%d GB", o.DiskSizeGB)})
	}
	if rec.Error != nil {
		table = append(table, []any{"error", rec.Error.Message})
	}
	for _, v := range o.Volumes {
		table = append(table, []any{"volume", v.HostPath + ":" + v.GuestPath + readOnly(v.ReadOnly)})
	}
	for _, p := range o.Ports {
		table = append(table, []any{"port", fmt.Sprintf("%d -> %d/%s", p.HostPort, p.GuestPort, strings.ToLower(p.Protocol))})
	}
	table = append(table, settings("env", o.Env)...)
	table = append(table, settings("label", o.Labels)...)
	return slices.DeleteFunc(table, func(row []any) bool { return row[1] == "" })
}

func settings(what string, m map[string]string) [][]any {
	var table [][]any
	for _, key := range slices.Sorted(maps.Keys(m)) {
		table = append(table, []any{what, key + "=" + m[key]})
	}
	return table
}

func readOnly(yes bool) string {
	if yes {
		return ":ro"
	}
	return ""
}

func when(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
