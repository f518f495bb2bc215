// Command bench measures boxes beside the tools that people use today, in one
// interleaved run, and says which of the project's bars are met. Machines
// differ and swing from hour to hour: only the ratios within one run count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// measurements are what the command line can choose from, in running order.
var measurements = []measurement{
	{"create", "create + start + first output, no pool: from before the request to the first byte of `echo hi`", measureCreate},
	{"steps", "the steps of ours", measureSteps},
	{"exec", "exec `echo hi` to its exit status, in a running box", measureExec},
	{"stream", "1 GiB of text on stdout, read 64 KiB at a time", measureStream},
	{"memory", "50 idle boxes, each used once: proportional set size of all processes of ours / 50", measureMemory},
	{"unpack", "import + unpack of Debian as one gzip layer of 69 MiB, into an empty store: wall time", measureUnpack},
	{"pull", "pull of an image of 1 GiB in 8 layers from a registry on loopback: peak memory of all processes of ours, above idle", measurePull},
	{"batch", "100 creates, 8 at once, each to its first output: wall time", measureBatch},
	{"network", "create + start + first output: image of 5 layers, network with a way out, one volume, one port", measureNetwork},
	{"tcp", "TCP between a box and a server behind a veth pair: 1 GiB over 2 connections, out, and in through a published port", measureTCP},
	{"traces", "50 boxes with network, port, volume and disk made and removed, 8 at once: wall time, and what is left", measureTraces},
	{"hammer", "200 boxes created, used and removed from 8 threads of one C program: wall time", measureHammer},
	{"rest-exec", "exec `echo hi` over REST in a running box: POST, events to the exit, through the Unix socket", measureRestExec},
	{"rest-run", "`POST /v1/run` of `echo hi` with a cached image of 5 layers, and the same life in process: create, exec, removal", measureRestRun},
	{"rest-reads", "GET /v1/boxes with 50 boxes, and GET /v1/boxes/{id}: 4 connections over TCP, with a key", measureRestReads},
	{"rest-stream", "512 MiB out of a box and into one over TCP, with a key, read 64 KiB at a time", measureRestStream},
	{"rest-terminal", "32 MiB of text on a terminal over TCP, with a key", measureRestTerminal},
	{"rest-files", "upload and download of 4 GiB: growth of the daemon's resident memory at its peak", measureRestFiles},
	{"rest-crowd", "500 readers of events and 200 terminals at once, 256 KiB for each: peak of the daemon's resident memory", measureRestCrowd},
	{"rest-idle", "100 boxes made over REST, each used once: resident memory of the daemon", measureRestIdle},
}

// measurement is one part of the report.
type measurement struct {
	name, what string
	run        func(context.Context, *bench) ([]row, error)
}

// bench is what all measurements share.
type bench struct {
	pace
	tools  string // directory of the built programs and peers
	dir    string // of all state of this run; removed at the end
	rootfs string // the same for everyone
	peers  peers
	ours   *ours
	lab    *lab // nil before it is needed

	service *service // nil before it is needed
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == bareArgument {
		if err := serveBare(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	// A second Ctrl-C ends the program at once: stop gives the signals back.
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer context.AfterFunc(ctx, stop)()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var names []string
	for _, m := range measurements {
		names = append(names, m.name)
	}
	var p pace
	flag.IntVar(&p.rounds, "rounds", 100, "interleaved `rounds` of the short measurements (the bars want 30 or more)")
	flag.DurationVar(&p.pause, "pause", 0, "idle `time` before each run: a host on which nobody else makes boxes")
	only := flag.String("only", strings.Join(names, ","), "`measurements` to make, separated by commas")
	tools := flag.String("build", "build", "`directory` of what make built")
	out := flag.String("json", "build/bench.json", "`file` for the report as JSON")
	flag.Parse()
	b, err := setUp(ctx, *tools, p)
	if err != nil {
		return err
	}
	rep := report{Machine: machine(b.dir), Rounds: p.rounds, PauseMS: p.pause.Milliseconds()}
	rep.Machine.print(os.Stdout)
	err = b.measure(ctx, strings.Split(*only, ","), &rep)
	return errors.Join(err, b.close(context.WithoutCancel(ctx)), rep.save(*out))
}

// measure makes the named measurements and prints each as it is ready. That
// ours did not run is a failure; that a bar is missed is a result.
func (b *bench) measure(ctx context.Context, names []string, rep *report) error {
	var errs []error
	for _, m := range measurements {
		if !slices.Contains(names, m.name) {
			continue
		}
		rows, err := m.run(ctx, b)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		rep.add(os.Stdout, m, rows)
		for _, r := range rows {
			if r.DidNotRun != "" && strings.HasPrefix(r.Contestant, "ours") {
				err = errors.Join(err, errors.New("ours did not run"))
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("measuring %s: %w", m.name, err))
		}
	}
	return errors.Join(errs...)
}

// setUp makes the directory of this run, the root file system, the peers and a home.
func setUp(ctx context.Context, tools string, p pace) (*bench, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root: boxes, runc and crun make namespaces and cgroups")
	}
	tools, err := filepath.Abs(tools)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{pace: p, tools: tools, dir: dir, rootfs: filepath.Join(dir, "rootfs")}
	if err := makeRootfs(b.rootfs, filepath.Join(tools, "bench")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b.peers = findPeers(ctx, b)
	b.ours = openOurs(b, filepath.Join(b.dir, "home"))
	return b, nil
}

// close ends and removes all that the run made.
func (b *bench) close(ctx context.Context) error {
	err := errors.Join(b.service.close(ctx), b.ours.close(ctx), b.peers.close(ctx), b.lab.close(ctx))
	if err != nil {
		return fmt.Errorf("cleaning up (%s is left): %w", b.dir, err)
	}
	return os.RemoveAll(b.dir)
}
