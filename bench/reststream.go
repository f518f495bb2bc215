package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"sandbox/client"
	"sandbox/core/options"
)

const (
	restStreamed     = 512 << 20 // bytes
	restStreamRounds = 15        // at most: a round moves 2.5 GiB
	streamedFile     = "/root/streamed"
	uploadedFile     = "/root/uploaded"
)

// measureRestStream moves bytes out of a box, and a file into one, over TCP.
func measureRestStream(ctx context.Context, b *bench) (all []row, err error) {
	s, err := b.theService(ctx)
	if err != nil {
		return nil, err
	}
	err = s.withBox(ctx, func(box string) error {
		if err := s.sh(ctx, box, fmt.Sprintf("%s %d > %s", producer, restStreamed, streamedFile)); err != nil {
			return err
		}
		theirs := func(what string, run func(context.Context) (time.Duration, error)) contestant {
			return contestant{name: "bare net/http, " + what, isolation: "none", run: run}
		}
		shown := pace{rounds: min(b.rounds, restStreamRounds)}.interleave(ctx,
			s.as("exec attach", func(ctx context.Context) (time.Duration, error) { return s.attach(ctx, box) }),
			s.as("download", func(ctx context.Context) (time.Duration, error) {
				return s.download(ctx, box, streamedFile, restStreamed)
			}),
			theirs("out", s.bareDownload),
			s.as("upload", func(ctx context.Context) (time.Duration, error) { return s.upload(ctx, box, restStreamed) }),
			theirs("in, to nowhere", s.bareUpload))
		rate := unit{"MB/s", func(d time.Duration) float64 { return restStreamed / d.Seconds() / 1e6 }}
		all = rows(rate, shown,
			bar{contestant: "ours, exec attach", peer: "bare net/http, out", percentile: 50, limit: 0.3, rate: true},
			bar{contestant: "ours, download", peer: "bare net/http, out", percentile: 50, limit: 0.3, rate: true})
		return nil
	})
	return all, err
}

// sh runs a line of shell in a box to its end.
func (s *service) sh(ctx context.Context, box, line string) error {
	e, err := s.unix.StartExec(ctx, box, options.Exec{Cmd: []string{"/bin/sh", "-c", line}})
	if err != nil {
		return err
	}
	for event, err := range s.unix.Events(ctx, box, e.ID, 0) {
		if err != nil {
			return err
		}
		if x := event.Exit; x != nil && x.Status != "succeeded" {
			return fmt.Errorf("%s: %+v", line, *x)
		}
	}
	return nil
}

// attach reads the output of a command as it comes.
func (s *service) attach(ctx context.Context, box string) (time.Duration, error) {
	start := time.Now()
	e, err := s.tcp.StartExec(ctx, box, options.Exec{Cmd: []string{producer, strconv.Itoa(restStreamed)}})
	if err != nil {
		return 0, err
	}
	session, err := s.tcp.Attach(ctx, box, e.ID, client.AttachOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = session.Close() }()
	var got int64
	_, err = session.Stream(ctx, func(_ bool, p []byte) error {
		got += int64(len(p))
		return nil
	})
	return time.Since(start), errors.Join(err, whole(got, restStreamed))
}

func (s *service) download(ctx context.Context, box, path string, size int64) (time.Duration, error) {
	start := time.Now()
	file, err := s.tcp.Download(ctx, box, path, false)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	got, err := readToEnd(file)
	return time.Since(start), errors.Join(err, whole(got, size))
}

func (s *service) bareDownload(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?%d", s.bare.url, restStreamed), nil)
	if err != nil {
		return 0, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := readToEnd(resp.Body)
	return time.Since(start), errors.Join(err, whole(got, restStreamed))
}

func (s *service) upload(ctx context.Context, box string, size int64) (time.Duration, error) {
	start := time.Now()
	made, err := s.tcp.Upload(ctx, box, client.Upload{Dest: uploadedFile, Name: "uploaded"}, zeros(size))
	return time.Since(start), errors.Join(err, whole(made.Size, size))
}

func (s *service) bareUpload(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.bare.url, zeros(restStreamed))
	if err != nil {
		return 0, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, err
	}
	return time.Since(start), resp.Body.Close()
}

// readToEnd reads as everyone does, 64 KiB at a time.
func readToEnd(r io.Reader) (n int64, err error) {
	for buf := make([]byte, bufferSize); ; {
		got, err := r.Read(buf)
		n += int64(got)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func whole(got, want int64) error {
	if got != want {
		return fmt.Errorf("%d of %d bytes came", got, want)
	}
	return nil
}

// zeros is a file of that many of them.
func zeros(size int64) io.Reader { return io.LimitReader(zero{}, size) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
