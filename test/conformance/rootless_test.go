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
	helpers := filepath.Join(u.Home, "programs")
	must(t, os.MkdirAll(filepath.Join(helpers, "lib"), 0o755)) //nolint:gosec // for the user
	for _, file := range []string{"sandbox", "sandbox-init", "sandbox-shim", "sandbox-logs", "lib/libchdb.so"} {
		give(t, filepath.Join(programs.Dir(), file), filepath.Join(helpers, file))
	}
	program := filepath.Join(u.Home, "conformance.test")
	give(t, "/proc/self/exe", program)
	table := filepath.Join(u.Home, "table")
	must(t, os.WriteFile(table, nil, 0o600))
	u.Own(t, table)
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

// give puts a program into a directory that the user may look into, which those of root
// and of go are not.
func give(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	must(t, err)
	if os.Link(from, to) == nil { // the log engine is half a gigabyte
		return
	}
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, content, 0o755)) //nolint:gosec // a program
}
