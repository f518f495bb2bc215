package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/core/fault"
)

// flagError words the failure of a flag's value for people: the messages of
// package strconv are about Go's functions.
func flagError(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &bad) || !errors.As(bad.Unwrap(), &number) {
		return err
	}
	flag, want := bad.GetFlag(), "a whole number"
	switch {
	case flag.Value.Type() == "bool":
		want = "true or false"
	case flag.Name == "cpus":
		want = "a whole number: a box has whole CPUs"
	case errors.Is(number, strconv.ErrRange):
		want = "a smaller number"
	}
	return fmt.Errorf("--%s %q: want %s", flag.Name, bad.GetValue(), want)
}

// mebibytes is the value of a flag that takes an amount of memory: a number of
// MiB, or a number with a unit, as 512m or 1g.
type mebibytes int

// String returns the number of MiB.
func (m *mebibytes) String() string { return strconv.Itoa(int(*m)) }

// Type returns the name of the value in --help.
func (m *mebibytes) Type() string { return "MIB|512m|1g" }

// maxAmount is the largest amount in its unit. Its MiB fit into 32 bits.
const maxAmount = 2000

// Set parses the amount.
func (m *mebibytes) Set(arg string) error {
	bad := fmt.Errorf("%q is not an amount of memory: want a whole number of MiB, or one with a unit, as 512m or 1g", arg)
	number := strings.TrimRight(arg, "bBiIgGmMtT")
	n, err := strconv.Atoi(number)
	if err != nil {
		return bad
	}
	factor := 1
	switch strings.ToLower(arg[len(number):]) {
	case "", "m", "mb", "mib":
	case "g", "gb", "gib":
		factor = 1 << 10
	case "t", "tb", "tib":
		factor = 1 << 20
	default:
		return bad
	}
	if factor > 1 && n > maxAmount {
		return fmt.Errorf("%q is more memory than a box can have", arg)
	}
	*m = mebibytes(n * factor)
	return nil
}

// envFlags are the flags that set environment variables.
type envFlags struct{ files, vars []string }

func (f *envFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.vars, "env", "e", nil, "set `KEY=VALUE` in the environment; KEY alone takes our own value, if there is one (repeatable)")
	fs.StringArrayVar(&f.files, "env-file", nil, "set the KEY=VALUE and KEY lines of `FILE` in the environment; # begins a comment, -e wins over them (repeatable)")
}

// withOurs completes each KEY that stands alone with the value that it has in our own
// environment. What is not set there is left out.
func withOurs(args []string) []string {
	var all []string
	for _, arg := range args {
		value, set := os.LookupEnv(arg)
		switch {
		case arg == "" || strings.Contains(arg, "="):
			all = append(all, arg)
		case set:
			all = append(all, arg+"="+value)
		}
	}
	return all
}

// env returns the environment that the flags ask for.
func (f *envFlags) env() (map[string]string, error) {
	var lines []string
	for _, name := range f.files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fault.Wrap(fault.InvalidArgument, err, "--env-file")
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\r\n")
			if start := strings.TrimSpace(line); start != "" && start[0] != '#' {
				lines = append(lines, line)
			}
		}
	}
	env, err := pairs("--env-file", withOurs(lines))
	if err != nil {
		return nil, err
	}
	vars, err := pairs("-e", withOurs(f.vars))
	for key, value := range vars {
		env[key] = value
	}
	return env, err
}
