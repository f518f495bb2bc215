package image

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// registry answers requests in place of a connection.
type registry func(*http.Request) (*http.Response, error)

func (r registry) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// request sends a request to a registry with a timeout of 30 s.
func (r registry) request(ctx context.Context, body func() io.Reader) (*http.Response, error) {
	base := &http.Transport{}
	base.RegisterProtocol("http", r)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://registry/", http.NoBody)
	if err != nil {
		return nil, err
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(body()), nil }
	return (&patient{base: base, timeout: timeout, plain: true}).RoundTrip(req)
}

func nothing() io.Reader { return http.NoBody }

// slowly is a body that takes so long before each byte of text, and then ends.
type slowly struct {
	ctx  context.Context
	each time.Duration
	text *strings.Reader
}

func (s slowly) Read(p []byte) (int, error) {
	if s.text.Len() == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(s.each):
		return s.text.Read(p[:1])
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s slowly) Close() error { return nil }

// TestSilence tells a registry that is silent from a reader who takes its time. The clock is
// not the real one.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		each, rests time.Duration // before each byte comes, and before each is asked for
		bytes       int
		want        error
	}{
		"quick":             {time.Millisecond, 0, 100, nil},
		"slow":              {10 * time.Second, 0, 2, nil},
		"silent":            {31 * time.Second, 0, 1, errSilent},
		"slow for too long": {10 * time.Second, 0, 4, errSilent},
		"slow reader":       {time.Millisecond, time.Hour, 10, nil},
		"both are slow":     {10 * time.Second, time.Hour, 4, errSilent},
		"much":              {time.Millisecond, 0, 4 * stride, nil}, // 65 s in all
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sends := registry(func(req *http.Request) (*http.Response, error) {
					return &http.Response{Body: slowly{req.Context(), c.each, strings.NewReader(strings.Repeat("x", c.bytes))}}, nil
				})
				resp, err := sends.request(context.WithValue(t.Context(), blobRequest{}, int64(c.bytes)), nothing)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got := 0
				for err == nil {
					time.Sleep(c.rests)
					var n int
					n, err = resp.Body.Read(make([]byte, 10))
					got += n
				}
				if c.want == nil && got != c.bytes || c.want == nil && !errors.Is(err, io.EOF) || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("%d bytes and %v, want %v", got, err, c.want)
				}
			})
		})
	}
}

// TestSilenceWhileSending sends a body that takes longer than a registry may be silent, also
// when the transport asks for the body a second time.
func TestSilenceWhileSending(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		each  time.Duration // before each part of the body is there
		bytes int
		waits time.Duration // how long the registry takes to answer
		want  error
	}{
		"a long body":  {10 * time.Second, 10, 20 * time.Second, nil},
		"a slow body":  {time.Hour, 2, 20 * time.Second, nil},
		"no answer":    {time.Second, 2, time.Hour, errSilent},
		"without body": {0, 0, 20 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answers := registry(func(req *http.Request) (*http.Response, error) {
					for _, again := range []bool{false, true} {
						body := req.Body
						if again {
							body, _ = req.GetBody()
						}
						if _, err := io.Copy(io.Discard, body); err != nil {
							return nil, err
						}
					}
					select {
					case <-time.After(c.waits):
						return &http.Response{Body: http.NoBody}, nil
					case <-req.Context().Done():
						return nil, req.Context().Err()
					}
				})
				resp, err := answers.request(t.Context(), func() io.Reader {
					return slowly{t.Context(), c.each, strings.NewReader(strings.Repeat("x", c.bytes))}
				})
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if err == nil {
					_ = resp.Body.Close()
				}
			})
		})
	}
}

// TestPassing tells failures that may be gone at the next try from others.
func TestPassing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the connection ends":     {io.ErrUnexpectedEOF, true},
		"no connection":           {&net.OpError{Op: "dial", Err: unix.ECONNREFUSED}, true},
		"an old connection ended": {&url.Error{Op: "Post", URL: "/", Err: errors.New("http: server closed idle connection")}, true}, // as net/http returns it
		"overloaded":              {&transport.Error{StatusCode: http.StatusServiceUnavailable}, true},
		"not found":               {&transport.Error{StatusCode: http.StatusNotFound}, false},
		"silent":                  {&url.Error{Op: "Get", URL: "/", Err: errSilent}, false},
		"classified":              {fault.Wrap(fault.Upstream, io.EOF, "x"), false},
		"of another kind":         {errors.New("x"), false},
	} {
		if got := passing(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
