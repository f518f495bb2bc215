package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"sandbox/core/engine/guest"
	"sandbox/core/engine/link"
)

// defaultGrace is Kubernetes' default of terminationGracePeriodSeconds.
const defaultGrace = 30 * time.Second

// serve runs the box until it is stopped.
func serve(args []string) error {
	flags := flag.NewFlagSet("sandbox-pod serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	address := flags.String("listen", ":7443", "where to listen")
	dir := flags.String("tls", "", "the directory of tls.crt, tls.key and ca.crt")
	own := flags.Bool("own-key", false, "make the key pair, and print the public key as the first line")
	grace := flags.Duration("grace", defaultGrace, "the terminationGracePeriodSeconds of the pod, without what a save of the disk takes")
	var kept diskFlags
	flags.StringVar(&kept.volume, "disk", "", "the directory in which the box's disk is saved")
	flags.StringVar(&kept.image, "image", "", "the directory of the image's files, as they were")
	flags.IntVar(&kept.life, "life", 1, "how often the box was started")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := identity(*dir, *own)
	if err != nil {
		return err
	}
	disk, err := kept.open()
	if err != nil {
		return err
	}
	pod, err := guest.NewPod(*grace, disk)
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", *address, config)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", *address, err)
	}
	fmt.Println("listening on", l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() { failed <- link.Serve(ctx, l, pod.Connect) }()
	stopped := make(chan string, 1)
	go func() { stopped <- pod.Wait() }()
	select {
	case why := <-stopped:
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			return err
		}
		lastWords(why)
		return nil
	case err := <-failed:
		cancel()
		return err
	}
}
