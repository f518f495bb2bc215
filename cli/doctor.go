package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sandbox/core/doctor"
	"sandbox/core/engine"
	"sandbox/core/fault"
	"sandbox/core/local"
)

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that this host can run boxes",
		Long: `Check that this host can run boxes: what is missing, and the command that adds it.

The exit code is 0 when nothing is missing that boxes need, else 3. Nothing is
changed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := local.Home("")
			if err != nil {
				return err
			}
			floor, err := local.DiskFloor(home)
			if err != nil {
				return err
			}
			checks := doctor.Run(cmd.Context(), engine.Config{
				Home: home, DiskFloorMiB: floor, Beside: programDir(), HelperDir: os.Getenv("SANDBOX_HELPER_DIR"),
			})
			return a.printChecks(checks)
		},
	}
}

// printChecks prints the checks. If one has failed it returns an [exit].
func (a *app) printChecks(checks []doctor.Check) error {
	fit := doctor.Fit(checks)
	var err error
	if a.asJSON() {
		err = writeJSON(a.Out, map[string]any{"ok": fit, "checks": checks})
	} else {
		_, err = fmt.Fprint(a.Out, checkList(checks))
	}
	if err == nil && !fit {
		return exit(fault.Unsupported.Row().Exit) // the list has told the failures already
	}
	return err
}

// checkList prints the checks as text, each on a line with what to do below it.
func checkList(checks []doctor.Check) string {
	var b strings.Builder
	for _, c := range checks {
		mark := "ok"
		if !c.OK {
			mark = "note"
		}
		if !c.OK && c.Required {
			mark = "MISSING"
		}
		fmt.Fprintf(&b, "%-8s %-17s %s\n", mark, c.Name, c.Found)
		if c.Missing != "" {
			fmt.Fprintf(&b, "%-26s %s\n", "", c.Missing)
		}
		if c.Fix != "" {
			fmt.Fprintf(&b, "%-26s -> %s\n", "", c.Fix)
		}
	}
	if doctor.Fit(checks) {
		b.WriteString("This host can run boxes.\n")
	} else {
		b.WriteString("This host can't run boxes until what is MISSING has been added.\n")
	}
	return b.String()
}
