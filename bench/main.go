// Command bench measures boxes beside the tools that people use today, in one
// interleaved run, and says which of the project's bars are met. Machines
// differ, and their speed changes from hour to hour: only the ratios within one
// run count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/bench/measures"
)

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		if err := serve(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	// A second Ctrl-C ends the program at once, because stop restores the
	// default handling of the signals.
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer context.AfterFunc(ctx, stop)()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// serve is what this program does in a process of its own, for one that measures.
func serve(what string, args []string) error {
	switch {
	case what == contestants.BareArgument:
		return contestants.ServeBare()
	case what == contestants.RootlessArgument && len(args) == 3:
		return contestants.ServeRootless(args[0], args[1], args[2])
	}
	return fmt.Errorf("no such part as %q", what)
}

func run(ctx context.Context) error {
	var names []string
	for _, m := range measures.All {
		names = append(names, m.Name)
	}
	var p harness.Pace
	flag.IntVar(&p.Rounds, "rounds", 100, "interleaved `rounds` of the short measurements (the bars want 30 or more)")
	flag.DurationVar(&p.Pause, "pause", 0, "idle `time` before each run: a host on which nobody else makes boxes")
	only := flag.String("only", strings.Join(names, ","), "`measurements` to make, separated by commas")
	tools := flag.String("build", "build", "`directory` of what make built")
	out := flag.String("json", "build/bench.json", "`file` for the report as JSON")
	old := flag.String("compare", "", "earlier report, a JSON `file`: measure nothing, and print how the one of -json differs")
	picture := flag.String("draw", "", "`file` for a picture, an SVG: measure nothing, and draw the report of -json")
	flag.Parse()
	if *old != "" || *picture != "" {
		return show(*out, *old, *picture)
	}
	b, err := contestants.SetUp(ctx, *tools, p)
	if err != nil {
		return err
	}
	rep := harness.Report{Machine: harness.Machine(b.Dir), Rounds: p.Rounds, PauseMS: p.Pause.Milliseconds()}
	rep.Machine.Print(os.Stdout)
	err = measure(ctx, b, strings.Split(*only, ","), &rep)
	return errors.Join(err, b.Close(context.WithoutCancel(ctx)), rep.Save(*out))
}

// drawn are the measurements of the picture.
var drawn = []string{"create", "create-warm", "exec"}

// show compares the report in file with an old one, and draws it; an empty name
// leaves that out.
func show(file, old, picture string) error {
	rep, err := harness.Load(file)
	if err != nil {
		return err
	}
	if old != "" {
		before, err := harness.Load(old)
		if err != nil {
			return err
		}
		harness.Compare(os.Stdout, before, rep)
	}
	if picture == "" {
		return nil
	}
	what := map[string]string{}
	for _, m := range measures.All {
		what[m.Name] = m.What
	}
	f, err := os.OpenFile(picture, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(rep.Draw(f, drawn, what), f.Close())
}

// measure makes the named measurements and prints each when it is ready. It
// fails if ours did not run. A bar that is missed is a result and no failure.
func measure(ctx context.Context, b *contestants.Field, names []string, rep *harness.Report) error {
	var errs []error
	for _, m := range measures.All {
		if !slices.Contains(names, m.Name) {
			continue
		}
		rows, err := m.Run(ctx, b)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		rep.Add(os.Stdout, m.Name, m.What, rows)
		for _, r := range rows {
			if r.DidNotRun != "" && strings.HasPrefix(r.Contestant, "ours") {
				err = errors.Join(err, errors.New("ours did not run"))
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("measuring %s: %w", m.Name, err))
		}
	}
	return errors.Join(errs...)
}
