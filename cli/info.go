package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
)

func (a *app) infoCmd() *cobra.Command {
	return a.completeBoxes(&cobra.Command{
		Use:     "info [BOX]",
		Aliases: []string{"inspect"},
		Short:   "Show all that is known about a box, or about the server",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 0 {
				return a.withServer(ctx, func(c *client.Client) error {
					info, err := c.Info(ctx)
					return a.show(info, err, describeServer(info))
				})
			}
			return a.with(ctx, false, func(on backend.Boxes) error {
				box, err := on.Box(ctx, args[0])
				return a.show(box, err, describe(box))
			})
		},
	}, 1, "")
}

// show prints a thing, as JSON or as the table, unless err says that it could not
// be had.
func (a *app) show(thing any, err error, table [][]any) error {
	switch {
	case err != nil:
		return err
	case a.asJSON():
		return writeJSON(a.Out, thing)
	}
	return writeTable(a.Out, table...)
}

// describe returns a box as a table. Members that are not set are left out.
func describe(b api.Box) [][]any {
	table := [][]any{
		{"id", b.ID}, {"name", deref(b.Name)}, {"status", b.Status},
		{"image", deref(b.Image)}, {"rootfs", deref(b.RootfsPath)},
		{"cpus", b.CPUs}, {"memory", fmt.Sprintf("%d MiB", b.MemoryMiB)}, {"network", b.Network},
		{"removed on stop", b.AutoRemove}, {"started on demand", b.AutoStart}, {"working dir", deref(b.WorkingDir)},
		{"created", when(&b.CreatedAt)}, {"started", when(b.StartedAt)}, {"stopped", when(b.StoppedAt)}, {"paused", when(b.PausedAt)}, {"expires", when(b.ExpiresAt)}, {"unused at most", lifetimeOf(b.IdleSeconds)},
		{"reason", b.State.Reason},
	}
	if b.State.PID != nil {
		table = append(table, []any{"pid", *b.State.PID})
	}
	if b.DiskSizeGB != nil {
		table = append(table, []any{"disk", fmt.Sprintf("%d GB", *b.DiskSizeGB)})
	}
	table = append(table, describeService(b)...)
	if b.Error != nil {
		table = append(table, []any{"error", b.Error.Message})
	}
	for _, v := range b.Volumes {
		table = append(table, []any{"volume", volumeSource(v) + ":" + v.GuestPath + readOnly(v.ReadOnly)})
	}
	for _, p := range b.Ports {
		table = append(table, []any{"port", fmt.Sprintf("%d -> %d/%s", p.HostPort, p.GuestPort, strings.ToLower(p.Protocol))})
	}
	table = append(table, settings("env", b.Env)...)
	table = append(table, settings("label", b.Labels)...)
	return withoutEmpty(table)
}

// describeServer returns a server's info as a table.
func describeServer(i api.Info) [][]any {
	return [][]any{
		{"name", i.Name}, {"version", i.Version}, {"API", i.APIVersion},
		{"boxes", fmt.Sprintf("%d, %d of them running; at most %d", i.Usage.Boxes, i.Usage.Running, i.Limits.MaxBoxes)},
		{"cpus", fmt.Sprintf("%d used by boxes; at most %d a box", i.Usage.CPUs, i.Limits.MaxCPUs)},
		{"memory", fmt.Sprintf("%d MiB used by boxes; at most %d MiB a box", i.Usage.MemoryMiB, i.Limits.MaxMemoryMiB)},
		{"disk", fmt.Sprintf("at most %d GB a box", i.Limits.MaxDiskSizeGB)},
	}
}

// withoutEmpty removes the rows with an empty value.
func withoutEmpty(table [][]any) [][]any {
	return slices.DeleteFunc(table, func(row []any) bool { return row[1] == "" })
}

func settings(what string, m map[string]string) [][]any {
	var table [][]any
	for _, key := range slices.Sorted(maps.Keys(m)) {
		table = append(table, []any{what, key + "=" + m[key]})
	}
	return table
}

// volumeSource returns where a volume comes from, as -v names it.
func volumeSource(v api.Volume) string {
	if v.Claim != "" {
		return claimPrefix + ":" + v.Claim
	}
	return v.HostPath
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
