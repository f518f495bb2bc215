// Command sandbox runs isolated Linux boxes; 'sandbox help' says how.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sandbox/cli"
)

func main() { os.Exit(run()) }

func run() int {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	if !cli.Lasting(os.Args[1:]) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := untilSignal(context.Background(), signals)
	defer stop()
	return cli.Run(ctx, os.Args[1:], cli.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// untilSignal ends ctx at the first signal that asks to end; the second one
// kills. Writing to a pipe that nobody reads becomes an error in place of a
// death, so that the command in the box is ended too.
func untilSignal(ctx context.Context, signals []os.Signal) (context.Context, func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	asked := make(chan os.Signal, 1)
	for _, sig := range signals {
		if !signal.Ignored(sig) { // by nohup, or a shell's &
			signal.Notify(asked, sig)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		defer signal.Stop(asked)
		select {
		case sig := <-asked:
			if number, ok := sig.(syscall.Signal); ok {
				cancel(cli.Signal(number))
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
