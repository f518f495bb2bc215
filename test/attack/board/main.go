// Command board attacks boxes, class by class, and prints what was tried and what the
// host saw. It ends with 1 if an attack got through or did not run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	build := flag.String("build", "build", "`directory` of the programs and of debian.tar")
	sources := flag.String("families", "test/attack/families", "`directory` of the attacks")
	only := flag.String("only", "", "run these `families` alone, separated by commas")
	write := flag.String("write", "", "also write the table into this `document`")
	owner := flag.String("owner", "", "attack the boxes of the user with this number and that of a group, `UID:GID`")
	verbose := flag.Bool("v", false, "print every attack")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	s := settings{build: *build, sources: *sources, only: *only, write: *write, verbose: *verbose}
	if *owner != "" {
		s.owner = &syscall.Credential{}
		if _, err := fmt.Sscanf(*owner, "%d:%d", &s.owner.Uid, &s.owner.Gid); err != nil {
			fmt.Fprintf(os.Stderr, "board: -owner %q: %v\n", *owner, err)
			os.Exit(2) //nolint:gocritic // nothing is left to be stopped
		}
	}
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "board:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

// settings say what is attacked with what.
type settings struct {
	build, sources, only, write string
	verbose                     bool
	owner                       *syscall.Credential // of the boxes; nil for who runs the board
}

func run(ctx context.Context, s settings) error {
	results, err := attack(ctx, s)
	if err != nil {
		return err
	}
	if s.verbose {
		printAll(os.Stdout, results)
	}
	text := table(results)
	fmt.Print(text)
	if s.write != "" {
		if err := writeTable(s.write, s.owner != nil, text); err != nil {
			return err
		}
	}
	return verdict(results)
}

// attack runs the families that were asked for: as many at once as there are CPUs, and
// then, one after another, those that want to be alone.
func attack(ctx context.Context, s settings) ([]result, error) {
	families, err := readFamilies(s.sources)
	if err != nil {
		return nil, err
	}
	families = slices.DeleteFunc(families, func(f family) bool { return s.only != "" && !strings.Contains(","+s.only+",", ","+f.name+",") })
	b, err := openBench(ctx, s.build, s.owner)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if slices.ContainsFunc(families, func(f family) bool { return f.where == atClient }) {
		if b.daemon, err = b.serve(ctx); err != nil {
			return nil, err
		}
	}
	results := make([]result, len(families))
	turns := make(chan struct{}, runtime.NumCPU())
	var beside sync.WaitGroup
	for i, f := range families {
		if !f.alone {
			turns <- struct{}{}
			beside.Go(func() { results[i] = b.attack(ctx, f); <-turns })
		}
	}
	beside.Wait()
	for i, f := range families {
		if f.alone {
			results[i] = b.attack(ctx, f)
		}
	}
	return results, nil
}
