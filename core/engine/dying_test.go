package engine

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
)

// TestDyingInit asks an init that ends a moment after its connections are closed.
// The kernel does it in this order too.
func TestDyingInit(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(c *Client, id string) error{
		"execs": func(c *Client, id string) error {
			if _, err := c.Execs(t.Context(), id); !fault.Is(err, fault.InvalidState) {
				return errors.Join(errors.New("no InvalidState"), err)
			}
			return nil
		},
		"usage": func(c *Client, id string) error { _, err := c.Usage(t.Context(), id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			init := exec.Command("cat") // runs until its input ends
			input, err := init.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := init.Start(); err != nil {
				t.Fatal(err)
			}
			c, id := dyingBox(t, init.Process.Pid)
			socket, err := net.Listen("unix", filepath.Join(record.Dir(c.home, id), wire.InitSocket))
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			gone := make(chan error, 1)
			go func() {
				conn, err := socket.Accept()
				if err == nil {
					_, err = conn.Read(make([]byte, 1024))
					err = errors.Join(err, conn.Close())
				}
				gone <- errors.Join(err, input.Close(), init.Wait())
			}()
			if err := ask(c, id); err != nil {
				t.Error(err)
			}
			if err := <-gone; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSilentInit asks an init that takes connections and never answers: the caller is
// told so, and not that the host is short of something.
func TestSilentInit(t *testing.T) {
	t.Parallel()
	c, id := dyingBox(t, os.Getpid())
	socket, err := net.Listen("unix", filepath.Join(record.Dir(c.home, id), wire.InitSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	conn, err := c.Dial(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetTimeout(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := c.Explain(id, conn.Ask(t.Context(), wire.TypeStats, nil, nil)); !fault.Is(err, fault.Engine) {
		t.Errorf("%v, want an engine_error", err)
	}
}

// dyingBox returns a client of a home with a box whose init has this PID.
func dyingBox(t *testing.T, pid int) (*Client, string) {
	t.Helper()
	init, err := process.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	home, id := t.TempDir(), ids.Box.New()
	c := newClient(Config{Home: home}, paths{})
	b := record.Box{Init: init}
	b.ID, b.Status, b.PID = id, api.Running, pid
	if err := errors.Join(c.records.Put(id, b, false), os.MkdirAll(record.Dir(home, id), 0o700)); err != nil {
		t.Fatal(err)
	}
	return c, id
}
