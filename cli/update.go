package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/options"
)

func (a *app) updateCmd() *cobra.Command {
	var o options.Box
	cmd := &cobra.Command{
		Use:   "update [--ttl TIME] [--idle TIME] [--on-expiry stop|pause|remove] [--auto-start] BOX...",
		Short: "Change how long boxes live",
		Long: `Change how long boxes live, what becomes of them then, and what starts them again.

The time of --ttl counts from now, and again from each start and resume of the
box. That of --idle is how long nobody may use it: no command, no file, no
connection. "none" takes a time away; --auto-start=false has a box started by
'sandbox start' alone. What is not given stays as it is.`,
		Example: "  sandbox update --ttl 1h web",
		Args:    cobra.MinimumNArgs(1),
	}
	lifeFlags(cmd.Flags(), &o)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var u options.Update
		if cmd.Flags().Changed("ttl") {
			u.TTLSeconds = &o.TTLSeconds
		}
		if cmd.Flags().Changed("idle") {
			u.IdleSeconds = &o.IdleSeconds
		}
		if cmd.Flags().Changed("on-expiry") {
			u.OnExpiry = &o.OnExpiry
		}
		if cmd.Flags().Changed("auto-start") {
			u.AutoStart = &o.AutoStart
		}
		if u == (options.Update{}) {
			return fault.New(fault.InvalidArgument, "nothing to change: give --ttl, --idle, --on-expiry or --auto-start")
		}
		return a.change(cmd.Context(), args, func(on backend.Boxes, ctx context.Context, ref string) (api.Box, error) {
			return on.UpdateBox(ctx, ref, u)
		})
	}
	return a.completeBoxes(cmd, 0, "")
}

// lifeFlags adds the flags that say how long a box lives, and what starts it again.
func lifeFlags(fs *pflag.FlagSet, o *options.Box) {
	fs.Var((*lifetime)(&o.TTLSeconds), "ttl", "how long the box lives, as 90s, 10m, 1h or 7d (none: without end)")
	fs.Var((*lifetime)(&o.IdleSeconds), "idle", "how long nobody may use the box, in the same form")
	fs.Var(&choice{&o.OnExpiry, []string{options.ExpiryStop, options.ExpiryPause, options.ExpiryRemove}}, "on-expiry", "what becomes of the box then (default stop)")
	fs.BoolVar(&o.AutoStart, "auto-start", false, "start or resume the box when a command, a file or a port of it is asked for")
}

// lifetime is the value of a flag that takes a time in seconds: 0 for none.
type lifetime int

// String returns the time.
func (l *lifetime) String() string {
	if *l == 0 {
		return "none"
	}
	return (time.Duration(*l) * time.Second).String()
}

// lifetimeOf returns a time in seconds as it is shown; "" for none.
func lifetimeOf(seconds *int) string {
	if seconds == nil {
		return ""
	}
	return (*lifetime)(seconds).String()
}

// Type returns the name of the value in --help.
func (l *lifetime) Type() string { return "TIME" }

// mostDays is more than a box can be given, and little enough for a Duration.
const mostDays = 1000

// Set parses the time, whole seconds of at least one.
func (l *lifetime) Set(arg string) error {
	if arg == "none" {
		*l = 0
		return nil
	}
	d, err := time.ParseDuration(arg)
	if n, isNumber := strconv.Atoi(arg); isNumber == nil {
		d, err = time.Duration(min(n, options.MaxTTLSeconds+1))*time.Second, nil
	}
	if days, ok := strings.CutSuffix(arg, "d"); ok {
		n, bad := strconv.Atoi(days)
		d, err = time.Duration(min(n, mostDays))*24*time.Hour, bad
	}
	if err != nil || d < time.Second || d > options.MaxTTLSeconds*time.Second || d%time.Second != 0 {
		return errors.New("want whole seconds from 1s to 365d, as 90s, 10m, 1h or 7d, or none")
	}
	*l = lifetime(d / time.Second)
	return nil
}
