package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/httpd"
	"sandbox/spool"
)

// This example makes a box, runs a command in it, and removes it.
func Example() {
	server := serve()
	defer server.Close()
	ctx := context.Background()

	c, err := client.New(client.Options{URL: server.URL, Credential: client.NewApiKeyCredential(server.key)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	o := options.Defaults()
	o.Name = "work"
	box, err := c.CreateBox(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	exec, err := c.StartExec(ctx, box.ID, options.Exec{Cmd: []string{"echo", "hello"}})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range c.Events(ctx, box.ID, exec.ID, 0) {
		switch {
		case err != nil:
			log.Fatal(err)
		case event.Log != nil:
			output, err := event.Log.Bytes() // Data may be base64
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s", output)
		case event.Exit != nil:
			fmt.Println("exit code", *event.Exit.ExitCode)
		}
	}
	if _, err := c.RemoveBox(ctx, "work", true); err != nil {
		log.Fatal(err)
	}
	// Output:
	// hello
	// exit code 0
}

// Run makes a box for one command and removes it again.
func ExampleClient_Run() {
	server := serve()
	defer server.Close()

	box := options.Defaults()
	box.Image = options.DefaultImage
	result, err := server.client.Run(context.Background(), client.RunRequest{
		Box:   box,
		Exec:  options.Exec{Cmd: []string{"tr", "a-z", "A-Z"}, Stdin: true},
		Stdin: "hello",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, exit code %d\n", result.Stdout, *result.ExitCode)
	// Output: HELLO, exit code 0
}

// A failure has a kind, by which a program can decide what to do.
func ExampleError() {
	server := serve()
	defer server.Close()

	_, err := server.client.Box(context.Background(), "nobody")
	fmt.Println(fault.Is(err, fault.BoxNotFound))
	var answer *client.Error
	if errors.As(err, &answer) {
		fmt.Println("HTTP status", answer.Status)
	}
	// Output:
	// true
	// HTTP status 404
}

// A session writes to a running command and reads its output.
func ExampleSession() {
	server := serve()
	defer server.Close()
	c, ctx := server.client, context.Background()

	box, err := c.CreateBox(ctx, options.Defaults())
	if err != nil {
		log.Fatal(err)
	}
	exec, err := c.StartExec(ctx, box.ID, options.Exec{Cmd: []string{"sort"}, Stdin: true})
	if err != nil {
		log.Fatal(err)
	}
	session, err := c.Attach(ctx, box.ID, exec.ID, client.AttachOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	if _, err := session.Write([]byte("pear\napple\n")); err != nil {
		log.Fatal(err)
	}
	if err := session.CloseInput(); err != nil {
		log.Fatal(err)
	}
	end, err := session.Stream(ctx, func(_ bool, p []byte) error {
		_, err := os.Stdout.Write(p)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit code", *end.ExitCode)
	// Output:
	// apple
	// pear
	// exit code 0
}

// Upload streams a file into a box, and Download streams it out again.
func ExampleClient_Upload() {
	server := serve()
	defer server.Close()
	c, ctx := server.client, context.Background()

	box, err := c.CreateBox(ctx, options.Defaults())
	if err != nil {
		log.Fatal(err)
	}
	dest := filepath.Join(server.scratch, "note.txt") // in a real box, for example /tmp/note.txt
	if _, err := c.Upload(ctx, box.ID, client.Upload{Dest: dest}, strings.NewReader("remember the milk\n")); err != nil {
		log.Fatal(err)
	}
	file, err := c.Download(ctx, box.ID, options.Download{Path: dest})
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	if _, err := io.Copy(os.Stdout, file); err != nil {
		log.Fatal(err)
	}
	// Output: remember the milk
}

// This example makes a key that can only use boxes, and only for an hour.
func ExampleClient_CreateKey() {
	server := serve()
	defer server.Close()

	end := time.Now().Add(time.Hour)
	key, err := server.client.CreateKey(context.Background(), client.NewKey{
		Name: "ci", Permissions: []string{api.MayUseBoxes}, ExpiresAt: &end,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key.Name, key.Permissions, key.Key != "")
	// Output: ci [Boxes] true
}

// exampleServer is a daemon for the examples. Its engine needs neither root nor
// the programs: the commands run on this host and not in a box.
type exampleServer struct {
	URL     string
	key     string         // the administrator's API key
	client  *client.Client // with this key
	scratch string         // directory that examples may write to
	close   []func() error
}

func serve() *exampleServer {
	s := &exampleServer{}
	home, err := os.MkdirTemp("", "example")
	check(err)
	s.scratch = home
	engine := fake.New()
	keys, err := auth.Open(filepath.Join(home, "keys"), nil)
	check(err)
	idempotency, err := httpd.OpenIdempotency(filepath.Join(home, "creates"))
	check(err)
	outputs := spool.Open(spool.Config{Dir: filepath.Join(home, "spool")})
	images := fake.Images{options.DefaultImage: {Ref: options.DefaultImage, Layers: []string{"/"}}}
	server, err := httpd.New(httpd.Config{
		Runtime: core.New(core.Config{Engine: engine, Images: images}), Keys: keys, Idempotency: idempotency,
		Spool: outputs, Held: home, Log: slog.New(slog.DiscardHandler), Environment: "default",
	})
	check(err)
	_, s.key, err = keys.Create(context.Background(), auth.Local("default"), auth.Request{Name: "example", Permissions: api.Permissions(), Environment: "default"})
	check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	s.URL = "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener, httpd.ByKey) }()
	s.client, err = client.New(client.Options{URL: s.URL, Credential: client.NewApiKeyCredential(s.key)})
	check(err)
	s.close = []func() error{
		func() error { s.client.Close(); return errors.Join(server.Close(context.Background()), <-served) },
		func() error { engine.Clear(); outputs.Close(); return keys.Close() },
		func() error { return os.RemoveAll(home) },
	}
	return s
}

// Close ends the daemon and removes what it has stored.
func (s *exampleServer) Close() {
	for _, f := range s.close {
		check(f())
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
