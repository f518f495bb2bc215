package core_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// open returns the runtime of the examples. Its engine needs neither root nor
// the programs: its commands run on this host, in no box. A program gets its
// Runtime from local.Open, and uses it in the same way.
func open() (*core.Runtime, func()) {
	engine := fake.New()
	images := fake.Images{"debian": {Ref: "debian", Layers: []string{"/"}}}
	return core.New(core.Config{Engine: engine, Images: images}), engine.Clear
}

// This example makes a box, runs a command in it, and removes it.
func ExampleRuntime() {
	runtime, end := open()
	defer end()
	ctx := context.Background()

	o := options.Defaults()
	o.Image, o.Name = "debian", "work"
	box, _, err := runtime.Create(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	exec, err := box.Exec(ctx, options.Exec{Cmd: []string{"echo", "hello"}})
	if err != nil {
		log.Fatal(err)
	}
	defer exec.Close()
	status, err := exec.Stream(ctx, make([]byte, core.OutputBuffer), func(_ bool, p []byte) error {
		_, err := os.Stdout.Write(p)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Status, status.ExitCode)

	if err := runtime.Remove(ctx, "work", true); err != nil {
		log.Fatal(err)
	}
	_, err = runtime.Get(ctx, "work")
	fmt.Println("it has gone:", fault.Is(err, fault.BoxNotFound))
	// Output:
	// hello
	// succeeded 0
	// it has gone: true
}

// This example stops a box and starts it again. The files of the box are kept.
func ExampleBox() {
	runtime, end := open()
	defer end()
	ctx := context.Background()

	o := options.Defaults()
	o.Image, o.AutoRemove = "debian", false
	box, _, err := runtime.Create(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	stopped, err := box.Stop(ctx, core.DefaultGrace)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stopped.Status)
	started, err := box.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(started.Status)
	// Output:
	// stopped
	// running
}

// This example writes input to an exec. The exec reads it until the caller
// closes it.
func ExampleExec() {
	runtime, end := open()
	defer end()
	ctx := context.Background()

	o := options.Defaults()
	o.Image = "debian"
	box, _, err := runtime.Create(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	exec, err := box.Exec(ctx, options.Exec{Cmd: []string{"sort"}, Stdin: true})
	if err != nil {
		log.Fatal(err)
	}
	defer exec.Close()
	if _, err := exec.Stdin().WriteString("pear\napple\n"); err != nil {
		log.Fatal(err)
	}
	if err := exec.CloseStdin(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = exec.Stream(ctx, make([]byte, core.OutputBuffer), func(_ bool, p []byte) error {
		fmt.Printf("%s", p)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// apple
	// pear
}

// This example uploads a file to a box. Missing directories of its path are
// made.
func ExampleBox_Upload() {
	runtime, end := open()
	defer end()
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	o := options.Defaults()
	o.Image = "debian"
	box, _, err := runtime.Create(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	dest := filepath.Join(dir, "data/note.txt") // in a real box, for example /data/note.txt
	made, err := box.Upload(ctx, core.Upload{Dest: dest}, strings.NewReader("remember the milk\n"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(made.Size, "bytes")
	// Output: 18 bytes
}
