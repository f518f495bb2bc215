package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sandbox/core"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.asJSON() {
				return writeJSON(a.Out, map[string]string{"version": core.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(a.Out, "sandbox %s\n", core.Version)
			return err
		},
	}
}
