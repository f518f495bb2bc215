package measures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/client"
	"sandbox/core/options"
)

const (
	crowdReaders   = 500
	crowdTerminals = 200
	terminalBoxes  = 4         // a box may have 64 terminals
	crowdText      = 256 << 10 // bytes that each of them gets
	mostCrowd      = 256 << 20
	crowdGreeting  = "here\n" // tells a reader that it is connected
)

// crowd holds many clients that are connected at once over the Unix socket:
// readers of the events of one command, and terminals. First the run waits
// until all are served, then all get the same text.
type crowd struct {
	s     *contestants.Service
	boxes []string // the first has the command, and all share the terminals
	text  []byte
	there sync.WaitGroup
	start chan struct{}
}

// measureRestCrowd watches the daemon while it serves a crowd, and checks every
// byte.
func measureRestCrowd(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	text, err := exec.CommandContext(ctx, filepath.Join(b.Rootfs, contestants.Producer), strconv.Itoa(crowdText)).Output()
	if err != nil {
		return nil, err
	}
	r := s.Alone("daemon", "MiB", crowdReaders+crowdTerminals)
	c := &crowd{s: s, text: text, start: make(chan struct{})}
	err = c.withBoxes(ctx, terminalBoxes, func() error {
		var failed []error
		_, peak, err := s.Growth(func() (err error) {
			failed, err = c.gather(ctx)
			return err
		})
		r.Weighs(peak, mostCrowd)
		r.Bars = append(r.Bars, harness.None("all get every byte", len(failed)))
		return errors.Join(append(failed[:min(len(failed), 3)], err)...)
	})
	return []harness.Row{r}, err
}

// withBoxes makes n boxes, and keeps them as long as use runs.
func (c *crowd) withBoxes(ctx context.Context, n int, use func() error) error {
	if n == 0 {
		return use()
	}
	return c.s.WithBox(ctx, func(box string) error {
		c.boxes = append(c.boxes, box)
		return c.withBoxes(ctx, n-1, use)
	})
}

// gather connects the crowd, starts the text and waits until all clients have
// ended. It returns what went wrong with each client.
func (c *crowd) gather(ctx context.Context) (failed []error, err error) {
	line := fmt.Sprintf("echo %s; read line; exec %s %d", crowdGreeting[:len(crowdGreeting)-1], contestants.Producer, crowdText)
	e, err := c.s.Unix.StartExec(ctx, c.boxes[0], options.Exec{Cmd: []string{"/bin/sh", "-c", line}, Stdin: true})
	if err != nil {
		return nil, err
	}
	ended := make(chan error)
	c.there.Add(crowdReaders + crowdTerminals)
	for i := range crowdReaders + crowdTerminals {
		client := func(ctx context.Context, there func()) error { return c.watch(ctx, c.boxes[i%terminalBoxes], there) }
		if i < crowdReaders {
			client = func(ctx context.Context, there func()) error { return c.read(ctx, e.ID, there) }
		}
		go func() {
			there := sync.OnceFunc(c.there.Done)
			err := client(ctx, there)
			there() // so that nobody waits for a client that has failed
			ended <- err
		}()
	}
	c.there.Wait()
	close(c.start)
	err = c.say(ctx, e.ID)
	for range crowdReaders + crowdTerminals {
		if err := <-ended; err != nil {
			failed = append(failed, err)
		}
	}
	return failed, err
}

// say sends the command the line for which it waits.
func (c *crowd) say(ctx context.Context, id string) error {
	session, err := c.s.Unix.Attach(ctx, c.boxes[0], id, client.AttachOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	_, err = fmt.Fprintln(session)
	return err
}

// read reads the command's events.
func (c *crowd) read(ctx context.Context, id string, there func()) error {
	var got []byte
	for event, err := range c.s.Unix.Events(ctx, c.boxes[0], id, 0) {
		switch {
		case err != nil:
			return err
		case event.Gap != nil:
			return fmt.Errorf("a gap: %+v", *event.Gap)
		case event.Log != nil:
			there()
			got = append(got, event.Log.Data...)
		}
	}
	return same(got, append([]byte(crowdGreeting), c.text...))
}

// watch opens a terminal of its own in a box, has the text shown on it, and reads it.
func (c *crowd) watch(ctx context.Context, box string, there func()) error {
	session, err := c.s.Unix.Terminal(ctx, box, client.TerminalOptions{Shell: "/bin/sh"})
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	go func() {
		<-c.start
		_, _ = fmt.Fprintf(session, "exec %s %d\n", contestants.Producer, crowdText) // if this fails, the reading fails, too
	}()
	var got []byte
	if _, err = session.Stream(ctx, func(_ bool, p []byte) error {
		there()
		got = append(got, p...)
		return nil
	}); err != nil {
		return err
	}
	shown := bytes.ReplaceAll(c.text, []byte("\n"), []byte("\r\n"))
	return same(got[max(0, len(got)-len(shown)):], shown) // the text follows the prompt and the echo
}

func same(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes came, which are not the %d that were sent", len(got), len(want))
	}
	return nil
}
