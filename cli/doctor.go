package cli

import "github.com/spf13/cobra"

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Check that this host can run boxes"}
}
