package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"sandbox/client"
	"sandbox/core/options"
)

// measureRestExec runs commands in a running box through the service.
func measureRestExec(ctx context.Context, b *bench) (all []row, err error) {
	s, err := b.theService(ctx)
	if err != nil {
		return nil, err
	}
	crun := b.peers.crun.startOne(ctx)
	err = s.withBox(ctx, func(box string) error {
		shown := b.interleave(ctx,
			s.as("POST and events", func(ctx context.Context) (time.Duration, error) { return s.exec(ctx, box) }),
			crun.contestant(hello))
		all = rows(millis, shown, bar{contestant: "ours, POST and events", peer: "crun", percentile: 50, limit: 0.75})
		return nil
	})
	return all, errors.Join(err, crun.close())
}

// exec starts a command and reads its events to the exit, through the socket.
func (s *service) exec(ctx context.Context, box string) (time.Duration, error) {
	start := time.Now()
	e, err := s.unix.StartExec(ctx, box, options.Exec{Cmd: hello})
	if err != nil {
		return 0, err
	}
	bytes := 0
	for event, err := range s.unix.Events(ctx, box, e.ID, 0) {
		switch {
		case err != nil:
			return 0, err
		case event.Log != nil:
			bytes += len(event.Log.Data)
		case event.Exit != nil && (bytes == 0 || event.Exit.ExitCode == nil || *event.Exit.ExitCode != 0):
			return 0, fmt.Errorf("%v in %s: %+v after %d bytes", hello, box, *event.Exit, bytes)
		}
	}
	return time.Since(start), nil
}

// measureRestRun runs a command in a box of its own, through the service and
// through the library, on one home.
func measureRestRun(ctx context.Context, b *bench) ([]row, error) {
	s, err := b.theService(ctx)
	if err != nil {
		return nil, err
	}
	all := b.interleave(ctx,
		s.as("POST /v1/run", s.run),
		s.as("in process", func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			box, err := s.ours.make(ctx, s.options())
			if err != nil {
				return 0, err
			}
			_, err = s.ours.exec(ctx, box, hello...)
			err = errors.Join(err, s.ours.remove(ctx, box))
			return time.Since(start), err
		}))
	return rows(millis, all, bar{contestant: "ours, POST /v1/run", peer: "ours, in process", percentile: 50, limit: 1.4}), nil
}

// options are those of a box of the cached image.
func (s *service) options() options.Box {
	o := options.Defaults()
	o.Image, o.CPUs = serviceImage, 1
	return o
}

func (s *service) run(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	result, err := s.unix.Run(ctx, client.RunRequest{Box: s.options(), Exec: options.Exec{Cmd: hello}})
	if err == nil && (result.ExitCode != 0 || len(result.Stdout) == 0) {
		err = fmt.Errorf("%v: %+v", hello, result)
	}
	return time.Since(start), err
}

const (
	listedBoxes     = 50
	readConnections = 4
	readRequests    = 2000 // a round
	readRounds      = 20   // at most
)

// measureRestReads reads the listing of many boxes, and one box, over several
// connections.
func measureRestReads(ctx context.Context, b *bench) (all []row, err error) {
	s, err := b.theService(ctx)
	if err != nil {
		return nil, err
	}
	boxes, err := s.ours.idle(ctx, listedBoxes)
	if err == nil {
		list, err1 := s.reads(ctx, b, "list", "/v1/boxes", 0.4)
		one, err2 := s.reads(ctx, b, "one", "/v1/boxes/"+boxes[0].ID(), 0.5)
		all, err = append(list, one...), errors.Join(err1, err2)
	}
	for _, box := range boxes {
		err = errors.Join(err, s.ours.remove(ctx, box))
	}
	return all, err
}

// reads compares the service's answer to a path with a bare handler that sends
// the same bytes.
func (s *service) reads(ctx context.Context, b *bench, name, path string, limit float64) ([]row, error) {
	doc, err := s.get(ctx, s.url+path)
	if err != nil {
		return nil, err
	}
	if err := s.bare.show(doc); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s, %d bytes", name, len(doc))
	load := func(url string) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) { return s.load(ctx, url, len(doc)) }
	}
	all := pace{rounds: min(b.rounds, readRounds)}.interleave(ctx, s.as(what, load(s.url+path)),
		contestant{name: "bare net/http, " + what, isolation: "none", run: load(s.bare.url)})
	rate := unit{"req/s", func(d time.Duration) float64 { return readRequests / d.Seconds() }}
	return rows(rate, all, bar{contestant: "ours, " + what, peer: "bare net/http, " + what, percentile: 50, limit: limit, rate: true}), nil
}

// load sends a round of requests over kept connections.
func (s *service) load(ctx context.Context, url string, size int) (time.Duration, error) {
	errs := make([]error, readConnections)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range errs {
		wg.Go(func() {
			for range readRequests / readConnections {
				doc, err := s.get(ctx, url)
				if err == nil {
					err = whole(int64(len(doc)), int64(size))
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

// get reads a document whole. It sends the key to everyone: it is a part of
// what a request is.
func (s *service) get(ctx context.Context, url string) ([]byte, error) {
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
