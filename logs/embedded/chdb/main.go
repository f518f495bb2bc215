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

// Main is the program. It returns when its starter is gone or wants no more;
// what is wrong before it can serve is also told to the starter.
func Main(args []string) error {
	s, err := handover.Parse(args)
	if err != nil {
		return err
	}
	if !s.Caged {
		return report(lockIn(s)) // goes on in Main, caged
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

// report tells the starter why the engine does not start.
func report(err error) error {
	if err != nil {
		_ = tell(err.Error())
	}
	return err
}

// tell writes to the starter, to whom the descriptor stays open until the end.
func tell(text string) error {
	if _, err := unix.Write(handover.Tell, []byte(text)); err != nil {
		return fmt.Errorf("tell the starter: %w", err)
	}
	return nil
}

// serve runs on a thread other than the process's first: the engine asks for
// the bounds of its thread's stack, which for the first stand in /proc.
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

// maxURL is enough for 100 values of 4096 characters, each escaped.
const maxURL = 8 << 20

// options are those of every session. Those of the engine itself count for
// the first one only.
func options(s handover.Settings) []string {
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
