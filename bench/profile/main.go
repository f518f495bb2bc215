// Command profile shows where the time of creates goes: it makes boxes while perf
// samples the whole host, and writes what the shim, its children and the boxes'
// inits did as a profile for `go tool pprof` and as a page with a flame graph.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	tools := flag.String("build", "build/profile", "`directory` of the programs, which have their symbols")
	out := flag.String("out", "build/profile", "`directory` for the profile")
	boxes := flag.Int("boxes", 200, "how many `boxes` to make, use and remove")
	flag.Parse()
	if err := run(ctx, *tools, *out, *boxes); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, tools, out string, boxes int) error {
	field, err := contestants.SetUp(ctx, tools, harness.Pace{})
	if err != nil {
		return err
	}
	data := filepath.Join(out, "perf.data")
	shim, err := record(ctx, field.Ours, data, boxes)
	if err = errors.Join(err, field.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	samples, err := read(ctx, data, shim, tools)
	if err != nil {
		return err
	}
	profile := filepath.Join(out, "create.pb.gz")
	if err := write(profile, samples); err != nil {
		return err
	}
	page := filepath.Join(out, "create.html")
	if err := draw(ctx, profile, page); err != nil {
		return err
	}
	fmt.Printf("%d samples of %d boxes: %s is a flame graph, and 'go tool pprof %s' asks more\n", len(samples), boxes, page, profile)
	return nil
}

// record makes boxes under perf, which writes to data, and returns the process id of
// their shim.
func record(ctx context.Context, ours *contestants.Ours, data string, boxes int) (shim int, err error) {
	if _, err := ours.Steps(ctx); err != nil { // starts the shim
		return 0, err
	}
	if shim, err = contestants.ShimOf(ours.Home); err != nil {
		return 0, err
	}
	perf, err := startPerf(ctx, data)
	if err != nil {
		return 0, err
	}
	for range boxes {
		if _, err = ours.Steps(ctx); err != nil {
			break
		}
	}
	return shim, errors.Join(err, perf.stop())
}
