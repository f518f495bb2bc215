package chdb

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/logs/embedded/handover"
)

// Main is the program. It returns when the process that started it is gone or
// stops it. A failure before it can serve is also reported to that process.
func Main(args []string) error {
	s, err := handover.Parse(args)
	if err != nil {
		return err
	}
	if !s.Caged {
		return report(lockIn(s)) // continues in a new Main, with s.Caged set
	}
	lifeline := os.NewFile(handover.Lifeline, "lifeline")
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

// report tells the daemon why the engine does not start.
func report(err error) error {
	if err != nil {
		_ = tell(err.Error())
	}
	return err
}

// tell writes to the daemon. The descriptor stays open until the program ends.
func tell(text string) error {
	if _, err := unix.Write(handover.Tell, []byte(text)); err != nil {
		return fmt.Errorf("tell the starter: %w", err)
	}
	return nil
}

// serve must run on a thread other than the process's first. The engine asks
// for the bounds of its thread's stack, and those of the first thread are read
// from /proc, which the child can't open.
func serve(s handover.Settings) error {
	if err := filter.LoadAll(); err != nil {
		return err
	}
	if err := load(s.Library); err != nil {
		return fmt.Errorf("load the engine: %w", err)
	}
	engine, err := start(options(s))
	if err != nil {
		return err
	}
	if err := engine.prepare(s.TTL); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(handover.Socket, "socket"))
	if err != nil {
		return fmt.Errorf("take the socket: %w", err)
	}
	if err := tell(handover.Ready); err != nil {
		return err
	}
	web := http.Server{
		Handler: engine, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: maxURL,
	}
	return web.Serve(listener)
}

// maxURL is enough for 100 values of 4096 characters, with each character
// escaped.
const maxURL = 8 << 20

// options returns the options of every session. The engine-wide ones among them
// take effect in the first session only.
func options(s handover.Settings) []string {
	return []string{
		"--path=" + s.Data,
		fmt.Sprintf("--max_server_memory_usage=%d", s.Memory),
		// libchdb turns these on for use as a shell. A server has them off.
		"--implicit_select=0",
		"--allow_introspection_functions=0",
		// There is no network, so another try would gain nothing.
		"--http_max_tries=1",
		// A row is acknowledged only once it is stored.
		"--async_insert=0",
	}
}
