package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/api"
	"sandbox/core/options"
)

// serviceFlags are the flags of run and create about the main command, with docker's names
// where docker has them.
type serviceFlags struct {
	restart string
	stop    bool
	line    string // of the health check
	none    bool   // no health check
	check   api.HealthCheck
}

func (f *serviceFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.restart, "restart", "", "when the main command is started again: no, always, on-failure or on-failure:N (default no)")
	fs.BoolVar(&f.stop, "stop-with-command", false, "stop the box when the main command has ended for good")
	fs.StringVar(&f.line, "health-cmd", "", "find out whether the main command works by this line for /bin/sh -c")
	fs.Var((*interval)(&f.check.IntervalMS), "health-interval", "time between two checks, as 30s (default: the image's, or 30s)")
	fs.Var((*interval)(&f.check.TimeoutMS), "health-timeout", "how long a check may take (default: the image's, or 30s)")
	fs.Var((*interval)(&f.check.StartPeriodMS), "health-start-period", "how long no failure counts (default: the image's, or none)")
	fs.Var((*interval)(&f.check.StartIntervalMS), "health-start-interval", "time between two checks within the start period (default 5s)")
	fs.IntVar(&f.check.Retries, "health-retries", 0, "how many checks fail until the command is unhealthy (default: the image's, or 3)")
	fs.BoolVar(&f.none, "no-healthcheck", false, "leave out the health check that the image has")
}

// exclude refuses --no-healthcheck beside a check.
func (f *serviceFlags) exclude(cmd *cobra.Command) {
	for _, name := range []string{"health-cmd", "health-interval", "health-timeout", "health-start-period", "health-start-interval", "health-retries"} {
		cmd.MarkFlagsMutuallyExclusive("no-healthcheck", name)
	}
}

// fill sets what the flags say of a box.
func (f *serviceFlags) fill(b *options.Box) {
	b.Restart, b.StopWithCommand = f.restart, f.stop
	check := f.check
	switch {
	case f.none:
		check.Test = []string{api.HealthNone}
	case f.line != "":
		check.Test = []string{api.HealthShell, f.line}
	case check.IntervalMS == 0 && check.TimeoutMS == 0 && check.StartPeriodMS == 0 && check.StartIntervalMS == 0 && check.Retries == 0:
		return
	}
	b.HealthCheck = &check
}

// mainCommand sets the main command of a box: argv, or else the image's own.
func mainCommand(b *options.Box, argv []string) {
	b.Command, b.ImageCommand = argv, len(argv) == 0
}

// interval is the value of a flag that takes a time in milliseconds: 0 if it is not given.
type interval int64

// String returns the time.
func (i *interval) String() string {
	if *i == 0 {
		return ""
	}
	return (time.Duration(*i) * time.Millisecond).String()
}

// Type returns the name of the value in --help.
func (i *interval) Type() string { return "TIME" }

// Set parses the time.
func (i *interval) Set(arg string) error {
	d, err := time.ParseDuration(arg)
	if err != nil || d <= 0 || d%time.Millisecond != 0 {
		return fmt.Errorf("%q is not a time: want one as 500ms, 30s or 5m", arg)
	}
	*i = interval(d.Milliseconds())
	return nil
}

// health returns the health of a box for a list; "-" where there is none.
func health(b api.Box) string {
	if b.State.Health == nil {
		return "-"
	}
	return string(b.State.Health.Status)
}

// describeService returns what a box says of its main command as rows of a table.
func describeService(b api.Box) [][]any {
	if b.Command == nil {
		return nil
	}
	table := [][]any{{"command", fmt.Sprintf("%q", b.Command)}, {"restart", b.Restart}, {"stops with command", deref(b.StopWithCommand)}}
	if c := b.State.Command; c != nil {
		state := fmt.Sprintf("%s, started again %d times", c.Status, c.Restarts)
		if c.ExitCode != nil {
			state += fmt.Sprintf(", last exit code %d", *c.ExitCode)
		}
		table = append(table, []any{"command is", state}, []any{"command's exec", c.ExecID})
	}
	if h := b.State.Health; h != nil {
		table = append(table, []any{"health", fmt.Sprintf("%s, %d failures in a row", h.Status, h.FailingStreak)}, []any{"last check", h.Output})
	}
	return table
}
