package contestants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"sandbox/bench/harness"
	"sandbox/client"
	"sandbox/core/options"
)

// UploadedFile is the path to which uploads go.
const UploadedFile = "/root/uploaded"

// Attach reads the output of a command as it comes.
func (s *Service) Attach(ctx context.Context, box string, size int64) (time.Duration, error) {
	start := time.Now()
	e, err := s.tcp.StartExec(ctx, box, options.Exec{Cmd: []string{Producer, strconv.FormatInt(size, 10)}})
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
	return time.Since(start), errors.Join(err, harness.Whole(got, size))
}

// Download reads a file of a box of that size, over TCP.
func (s *Service) Download(ctx context.Context, box, path string, size int64) (time.Duration, error) {
	start := time.Now()
	file, err := s.tcp.Download(ctx, box, options.Download{Path: path})
	if err != nil {
		return 0, err
	}
	defer file.Close()
	got, err := harness.ReadToEnd(file)
	return time.Since(start), errors.Join(err, harness.Whole(got, size))
}

// BareDownload reads that many bytes from the bare server.
func (s *Service) BareDownload(ctx context.Context, size int64) (time.Duration, error) {
	return s.Fetch(ctx, fmt.Sprintf("%s?%d", s.Bare.URL, size), size)
}

// Fetch reads what an address answers, of that size. It sends the key of the service.
func (s *Service) Fetch(ctx context.Context, url string, size int64) (time.Duration, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := harness.ReadToEnd(resp.Body)
	return time.Since(start), errors.Join(err, harness.Whole(got, size))
}

// Upload writes a file of that size into a box, over TCP.
func (s *Service) Upload(ctx context.Context, box string, size int64) (time.Duration, error) {
	start := time.Now()
	made, err := s.tcp.Upload(ctx, box, client.Upload{Dest: UploadedFile, Name: "uploaded"}, zeros(size))
	return time.Since(start), errors.Join(err, harness.Whole(made.Size, size))
}

// BareUpload sends that many bytes to the bare server, which drops them.
func (s *Service) BareUpload(ctx context.Context, size int64) (time.Duration, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Bare.URL, zeros(size))
	if err != nil {
		return 0, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, err
	}
	return time.Since(start), resp.Body.Close()
}

// zeros returns a file of that many zero bytes.
func zeros(size int64) io.Reader { return io.LimitReader(zero{}, size) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Terminal opens a shell on a terminal, has it show the text, and reads to the
// end of it.
func (s *Service) Terminal(ctx context.Context, box string, size int64) (time.Duration, error) {
	session, err := s.tcp.Terminal(ctx, box, client.TerminalOptions{Shell: "/bin/sh"})
	if err != nil {
		return 0, err
	}
	defer func() { _ = session.Close() }()
	start := time.Now()
	if _, err := fmt.Fprintf(session, "exec %s %d\n", Producer, size); err != nil {
		return 0, err
	}
	var shown int64
	_, err = session.Stream(ctx, func(_ bool, p []byte) error {
		shown += int64(len(p))
		return nil
	})
	return time.Since(start), errors.Join(err, AllShown(shown, size))
}

// AllShown returns an error if fewer bytes than the text's size were shown. More
// are right, because a terminal ends each line with one byte more.
func AllShown(n, size int64) error {
	if n < size {
		return harness.Whole(n, size)
	}
	return nil
}
