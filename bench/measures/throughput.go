package measures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core"
)

const (
	sent      = 1 << 30 // bytes
	streams   = 2       // connections at once
	tcpRounds = 15      // at most: a round moves 4 GiB
)

// measureTCP sends bytes from a box to a server in the lab's world, and from
// there to a published port.
func measureTCP(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	l, err := b.Lab(ctx)
	if err != nil {
		return nil, err
	}
	ours, podman := startBox(ctx, l), startContainer(ctx, l)
	all := harness.Pace{Rounds: min(b.Rounds, tcpRounds)}.Interleave(ctx, ours.out(l), podman.out(l), ours.in(l), podman.in(l))
	rate := harness.PerSecond("MB/s", sent/1e6)
	return harness.Rows(rate, all,
		harness.Bar{Contestant: "ours, out", Peer: "podman, out", Percentile: 50, Limit: 0.9, Rate: true},
		harness.Bar{Contestant: "ours, in", Peer: "podman, in", Percentile: 50, Limit: 0.9, Rate: true},
	), errors.Join(ours.close(ctx), podman.close(ctx))
}

// server is a box or container in which a program receives what is sent to its
// port.
type server struct {
	harness.Contestant
	port  int // on labHost
	exec  func(ctx context.Context, args ...string) error
	close func(context.Context) error
}

func startBox(ctx context.Context, l *contestants.Lab) *server {
	s := &server{Contestant: l.Ours.Contestant(nil), port: l.NextPort()}
	s.close = func(context.Context) error { return nil }
	if s.Why != "" {
		return s
	}
	var box *core.Box
	box, err := l.Create(ctx, contestants.LabHost, s.port)
	if err == nil {
		s.close = func(ctx context.Context) error { return l.Ours.Remove(ctx, box) }
		s.exec = func(ctx context.Context, args ...string) error {
			_, err := l.Ours.Exec(ctx, box, args...)
			return err
		}
		err = s.serve(ctx)
	}
	return s.fails(err)
}

func startContainer(ctx context.Context, l *contestants.Lab) *server {
	s := &server{Contestant: l.Podman.Contestant("podman", nil), port: l.NextPort()}
	name, args := l.Podman.Run(append(l.Publish(contestants.LabHost, s.port), "--detach"), "/bin/sleep", "1000000")
	s.close = func(context.Context) error { return nil }
	if s.Why != "" {
		return s
	}
	err := l.Podman.Do(ctx, args...)
	if err == nil {
		s.close = func(ctx context.Context) error { return l.Podman.Remove(ctx, name) }
		s.exec = func(ctx context.Context, args ...string) error {
			return l.Podman.Do(ctx, append([]string{"exec", name}, args...)...)
		}
		err = s.serve(ctx)
	}
	return s.fails(err)
}

func (s *server) serve(ctx context.Context) error {
	return s.exec(ctx, contestants.TCPProgram, "serve", strconv.Itoa(contestants.GuestPort))
}

func (s *server) fails(err error) *server {
	if err != nil {
		s.Why = err.Error()
	}
	return s
}

func (s *server) as(what string, run func(context.Context) (time.Duration, error)) harness.Contestant {
	c := s.Contestant
	c.Name, c.Run = c.Name+", "+what, run
	return c
}

// out sends from inside the box or container to the world.
func (s *server) out(l *contestants.Lab) harness.Contestant {
	return s.as("out", func(ctx context.Context) (took time.Duration, err error) {
		var sink *net.TCPListener
		err = l.World.Do(func() (err error) {
			sink, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(contestants.LabWorld)})
			return err
		})
		if err != nil {
			return 0, err
		}
		defer func() { _ = sink.Close() }()
		done := make(chan error)
		go func() {
			done <- s.exec(ctx, contestants.TCPProgram, "send", contestants.LabWorld, strconv.Itoa(sink.Addr().(*net.TCPAddr).Port), strconv.Itoa(sent), strconv.Itoa(streams))
		}()
		took, err = take(sink)
		return took, errors.Join(err, <-done)
	})
}

// take receives over all connections, and returns the time from the beginning
// of the first to the end of the last.
func take(l *net.TCPListener) (time.Duration, error) {
	if err := l.SetDeadline(time.Now().Add(harness.Timeout)); err != nil {
		return 0, err
	}
	var start time.Time
	var total atomic.Int64
	var wg sync.WaitGroup
	for i := range streams {
		c, err := l.AcceptTCP()
		if err != nil {
			return 0, err
		}
		if i == 0 {
			start = time.Now()
		}
		wg.Go(func() {
			defer c.Close()
			total.Add(readAll(c))
		})
	}
	wg.Wait()
	took := time.Since(start)
	if total.Load() != sent {
		return 0, fmt.Errorf("%d of %d bytes came", total.Load(), sent)
	}
	return took, nil
}

// tcpBuffer is how many bytes every contestant reads and writes at a time.
const tcpBuffer = 128 << 10

// readAll reads to the end and returns how many bytes came.
func readAll(c *net.TCPConn) (n int64) {
	buf := make([]byte, tcpBuffer)
	for {
		got, err := c.Read(buf)
		n += int64(got)
		if err != nil {
			return n
		}
	}
}

// in sends from the world to the published port.
func (s *server) in(l *contestants.Lab) harness.Contestant {
	return s.as("in", func(context.Context) (time.Duration, error) {
		conns := make([]*net.TCPConn, streams)
		err := l.World.Do(func() (err error) {
			for i := range conns {
				if conns[i], err = net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.ParseIP(contestants.LabHost), Port: s.port}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		errs := make([]error, streams)
		var wg sync.WaitGroup
		start := time.Now()
		for i, c := range conns {
			wg.Go(func() {
				defer c.Close()
				errs[i] = sendAll(c, sent/streams)
			})
		}
		wg.Wait()
		return time.Since(start), errors.Join(errs...)
	})
}

// sendAll sends n bytes, and waits until the other side has read them.
func sendAll(c *net.TCPConn, n int) error {
	if err := c.SetDeadline(time.Now().Add(harness.Timeout)); err != nil {
		return err
	}
	buf := make([]byte, tcpBuffer)
	for ; n > 0; n -= len(buf) {
		if _, err := c.Write(buf[:min(n, len(buf))]); err != nil {
			return err
		}
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if _, err := c.Read(buf); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the other side did not read to the end: %w", err)
	}
	return nil
}
