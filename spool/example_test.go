package spool_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/options"
	"sandbox/spool"
)

// begin starts a command whose output is spooled in dir. The examples use an
// engine that needs no root: the command runs on this host, in no box.
func begin(dir string, cmd ...string) (*spool.Exec, func()) {
	ctx := context.Background()
	engine := fake.New()
	o := options.Defaults()
	o.RootfsPath = "/"
	box, _, err := core.New(core.Config{Engine: engine}).Create(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	command, err := box.Exec(ctx, options.Exec{Cmd: cmd})
	if err != nil {
		log.Fatal(err)
	}
	store := spool.Open(spool.Config{Dir: filepath.Join(dir, "spool")})
	exec, err := store.Start(command, false)
	if err != nil {
		log.Fatal(err)
	}
	return exec, func() { store.Close(); engine.Clear() }
}

// Any number of readers may read the output of an exec, each from any position,
// while the command runs and afterwards.
func ExampleExec_Events() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	exec, end := begin(dir, "echo", "hello")
	defer end()

	events, err := exec.Events(0)
	if err != nil {
		log.Fatal(err)
	}
	defer events.Close()
	buf := make([]byte, spool.MaxEvent)
	for !events.Done() {
		if err := events.Wait(context.Background()); err != nil {
			log.Fatal(err)
		}
		event, err := events.Next(buf)
		switch {
		case err != nil:
			log.Fatal(err)
		case event == nil: // no further event yet
		case event.Kind == spool.Log:
			fmt.Printf("%s", event.Data)
		case event.Kind == spool.Exit:
			fmt.Println("exit code", *exec.Record().ExitCode)
		}
	}
	// Output:
	// hello
	// exit code 0
}

// The record of an exec is final when the exec has ended.
func ExampleExec_Wait() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	exec, end := begin(dir, "echo", "hello")
	defer end()

	if err := exec.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	rec := exec.Record()
	fmt.Println(rec.Status, *rec.StdoutBytes, "bytes")
	// Output: succeeded 6 bytes
}
