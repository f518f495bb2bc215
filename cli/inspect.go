package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
)

func (a *app) imagesInspectCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect IMAGE",
		Short: "Show all that is known about an image",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.with(ctx, false, func(on backend.Boxes) error {
				info, err := on.Image(ctx, args[0])
				return a.show(info, err, describeImage(info))
			})
		},
	}
}

// describeImage returns an image as a table. Members that are not set are left
// out.
func describeImage(i api.Image) [][]any {
	table := [][]any{
		{"name", i.Name}, {"id", i.ID}, {"digest", i.Digest}, {"size", size(i.Size)}, {"architecture", i.Architecture},
		{"created", when(&i.CreatedAt)}, {"user", i.User}, {"working dir", i.WorkingDir},
		{"entrypoint", strings.Join(i.Entrypoint, " ")}, {"cmd", strings.Join(i.Cmd, " ")},
		{"stop signal", i.StopSignal},
	}
	if i.HealthCheck != nil {
		table = append(table, []any{"health check", strings.Join(i.HealthCheck.Test, " ")})
	}
	for _, port := range i.ExposedPorts {
		table = append(table, []any{"exposes", port})
	}
	for _, key := range slices.Sorted(maps.Keys(i.Labels)) {
		table = append(table, []any{"label", key + "=" + i.Labels[key]})
	}
	for _, env := range i.Env {
		table = append(table, []any{"env", env})
	}
	for _, layer := range i.Layers {
		table = append(table, []any{"layer", layer})
	}
	return withoutEmpty(table)
}
