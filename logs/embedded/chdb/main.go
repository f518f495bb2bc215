package chdb

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors that the starter passes.
const (
	fdSocket   = 3 // listens for requests
	fdReady    = 4 // written to when requests are answered
	fdLifeline = 5 // at its end the starter is gone or wants no more
	fdLock     = 6 // the lock of the engine's folder
)

// Ready is what is written to the starter when requests are answered. What
// else it gets is why they are not.
const Ready = "ready\n"

// Settings is what the starter decides.
type Settings struct {
	Data    string        // folder of the engine
	Library string        // path of libchdb.so
	TTL     time.Duration // how long a row is kept
	Memory  int64         // bytes that all statements together may use
	caged   bool
}

// Args gives the settings as arguments of sandbox-logs.
func (s Settings) Args() []string {
	return []string{"-data", s.Data, "-library", s.Library, "-ttl", s.TTL.String(), "-memory", fmt.Sprint(s.Memory)}
}

func parse(args []string) (Settings, error) {
	var s Settings
	f := flag.NewFlagSet("sandbox-logs", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.Data, "data", "", "")
	f.StringVar(&s.Library, "library", "", "")
	f.DurationVar(&s.TTL, "ttl", 0, "")
	f.Int64Var(&s.Memory, "memory", 0, "")
	f.BoolVar(&s.caged, "caged", false, "")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.Data == "" || s.Library == "" || f.NArg() > 0 {
		return s, errors.New("this program is started by sandbox serve")
	}
	return s, nil
}

// Main is the program. It returns when its starter is gone or wants no more;
// what is wrong before it can serve is also told to the starter.
func Main(args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if !s.caged {
		return report(lockIn(s)) // goes on in Main, caged
	}
	lifeline := os.NewFile(fdLifeline, "lifeline")
	gone := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, lifeline)
		gone <- err
	}()
	failed := make(chan error, 1)
	go func() { failed <- report(serve(s)) }()
	select {
	case err := <-gone:
		return err
	case err := <-failed:
		return err
	}
}

// report tells the starter why the engine does not start.
func report(err error) error {
	if err != nil {
		ready := os.NewFile(fdReady, "ready")
		_, _ = io.WriteString(ready, err.Error())
	}
	return err
}

// serve runs on a thread other than the process's first: the engine asks for
// the bounds of its thread's stack, which for the first stand in /proc.
func serve(s Settings) error {
	if err := loadFilter(); err != nil {
		return err
	}
	// Another child may still be ending: its lock goes with it.
	if err := unix.Flock(fdLock, unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the engine's folder: %w", err)
	}
	if err := load(s.Library); err != nil {
		return fmt.Errorf("load the engine: %w", err)
	}
	engine, err := start(s.options())
	if err != nil {
		return err
	}
	if err := engine.prepare(s.TTL); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(fdSocket, "socket"))
	if err != nil {
		return fmt.Errorf("take the socket: %w", err)
	}
	if err := tellReady(); err != nil {
		return err
	}
	web := http.Server{Handler: engine, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return context.Background() }}
	return web.Serve(listener)
}

func tellReady() error {
	ready := os.NewFile(fdReady, "ready")
	if _, err := io.WriteString(ready, Ready); err != nil {
		return fmt.Errorf("tell the starter: %w", err)
	}
	return ready.Close()
}

// options are those of every session. Those of the engine itself count for
// the first one only.
func (s Settings) options() []string {
	return []string{
		"--path=" + s.Data,
		fmt.Sprintf("--max_server_memory_usage=%d", s.Memory),
		// As a server has them: libchdb turns these on for its shell.
		"--implicit_select=0",
		"--allow_introspection_functions=0",
		// There is no network: nothing is gained by another try.
		"--http_max_tries=1",
		// Rows are acknowledged when they are stored.
		"--async_insert=0",
	}
}
