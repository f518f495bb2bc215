package conformance_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandbox/test/account"
	"sandbox/test/programs"
)

var rootless = flag.Bool("rootless", false, "run the cases as an ordinary user, whom the test makes")

// runAsUser runs this program once more, as an ordinary user, and takes over the table.
func runAsUser(t *testing.T) {
	t.Helper()
	u := account.New(t)
	compile(t, filepath.Join(u.Home, driverName))
	program := filepath.Join(u.Home, "conformance.test")
	must(t, account.Give("/proc/self/exe", program))
	table := filepath.Join(u.Home, "table")
	must(t, os.WriteFile(table, nil, 0o600))
	must(t, u.Own(table))
	helpers, err := u.Programs()
	must(t, err)
	cmd := u.Command(t.Context(), "", program, "-test.run", flag.Lookup("test.run").Value.String(), "-test.timeout", "25m", "-rootless", "-table", table, "-test.v="+strconv.FormatBool(testing.Verbose()))
	cmd.Env = append(cmd.Env, "SANDBOX_HELPER_DIR="+helpers)
	packages, err := filepath.Glob(filepath.Join(programs.Dir(), "python/venv/lib/python*/site-packages"))
	must(t, err)
	cmd.Env = append(cmd.Env, "PYTHONPATH="+strings.Join(packages, ":"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error("as the user: ", err)
	}
	if *tableFile != "" {
		text, err := os.ReadFile(table)
		must(t, err)
		must(t, os.WriteFile(*tableFile, text, 0o600))
	}
}
