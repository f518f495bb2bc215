package contestants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"sandbox/bench/harness"
	"sandbox/client"
	"sandbox/core/options"
)

// readConnections is how many connections read at once.
const readConnections = 4

// Exec starts a command and reads its events to the exit, through the socket.
func (s *Service) Exec(ctx context.Context, box string) (time.Duration, error) {
	start := time.Now()
	err := said(ctx, s.Unix, box, Hello)
	return time.Since(start), err
}

// said runs a command in a box: POST, and events to the exit. It must say something.
func said(ctx context.Context, c *client.Client, box string, cmd []string) error {
	e, err := c.StartExec(ctx, box, options.Exec{Cmd: cmd})
	if err != nil {
		return err
	}
	bytes := 0
	for event, err := range c.Events(ctx, box, e.ID, 0) {
		switch {
		case err != nil:
			return err
		case event.Log != nil:
			bytes += len(event.Log.Data)
		case event.Exit != nil && (bytes == 0 || event.Exit.ExitCode == nil || *event.Exit.ExitCode != 0):
			return fmt.Errorf("%v in %s: %+v after %d bytes", cmd, box, *event.Exit, bytes)
		}
	}
	return nil
}

// Options returns the options of a box of the cached image.
func (s *Service) Options() options.Box {
	o := options.Defaults()
	o.Image, o.CPUs = serviceImage, 1
	return o
}

// Run runs a command in a box of its own, through the socket.
func (s *Service) Run(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	result, err := s.Unix.Run(ctx, client.RunRequest{Box: s.Options(), Exec: options.Exec{Cmd: Hello}})
	if err == nil && (result.ExitCode == nil || *result.ExitCode != 0 || len(result.Stdout) == 0) {
		err = fmt.Errorf("%v: %+v", Hello, result)
	}
	return time.Since(start), err
}

// Load sends a round of requests over connections that are kept open.
func (s *Service) Load(ctx context.Context, url string, requests, size int) (time.Duration, error) {
	errs := make([]error, readConnections)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range errs {
		wg.Go(func() {
			for range requests / readConnections {
				doc, err := s.Get(ctx, url)
				if err == nil {
					err = harness.Whole(int64(len(doc)), int64(size))
				}
				if errs[i] = err; err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}

// Get reads a whole document. It sends the key to every server, because that is
// a part of each request.
func (s *Service) Get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// Shell runs a line of shell in a box to its end.
func (s *Service) Shell(ctx context.Context, box, line string) error {
	e, err := s.Unix.StartExec(ctx, box, options.Exec{Cmd: []string{"/bin/sh", "-c", line}})
	if err != nil {
		return err
	}
	for event, err := range s.Unix.Events(ctx, box, e.ID, 0) {
		if err != nil {
			return err
		}
		if x := event.Exit; x != nil && x.Status != "succeeded" {
			return fmt.Errorf("%s: %+v", line, *x)
		}
	}
	return nil
}

// Used makes boxes over REST and uses each once. It returns the boxes that were
// made even if it fails.
func (s *Service) Used(ctx context.Context, n int) (boxes []string, err error) {
	for range n {
		box, err := s.Unix.CreateBox(ctx, s.Options())
		if err != nil {
			return boxes, err
		}
		boxes = append(boxes, box.ID)
		if _, err := s.Exec(ctx, box.ID); err != nil {
			return boxes, err
		}
	}
	return boxes, nil
}
