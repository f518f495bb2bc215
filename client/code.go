package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/feed"
	"sandbox/core/options"
)

// codeBody is the document that runs code.
type codeBody struct {
	Code      string            `json:"code"`
	Language  api.Language      `json:"language,omitempty"`
	Context   string            `json:"context,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	TimeoutMS int64             `json:"timeout_ms,omitempty"`
}

// contextBody is the document that makes a context.
type contextBody struct {
	Language   api.Language      `json:"language,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	User       string            `json:"user,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
}

// RunCode runs code in a context of a running box. It returns once the code runs, and
// waits for the runs in the same context that were asked for before. Behind the last
// event, an [api.CodeEnd], Next returns io.EOF; it fails with Unavailable where the
// connection is lost, and then the code was interrupted. The caller closes the run,
// which interrupts code that still runs; so does the end of ctx. Errors: BoxNotFound,
// InvalidState (the box does not run, or another program runs code in the context),
// ContextNotFound, InvalidArgument, Execution (the box does not have the language),
// ResourceExhausted (too many runs wait), Timeout (the language does not start).
func (c *Client) RunCode(ctx context.Context, box string, o options.Code) (*feed.Feed[api.CodeEvent], error) {
	path, err := c.boxPath(box, "", "code")
	if err != nil {
		return nil, err
	}
	body := codeBody{Code: o.Code, Language: o.Language, Context: o.Context, Env: o.Env, TimeoutMS: int64((o.Timeout + time.Millisecond - 1) / time.Millisecond)}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.send(ctx, request{method: http.MethodPost, path: path, body: body})
	if err != nil {
		cancel()
		return nil, err
	}
	r := &codeRun{c: c, ctx: ctx, events: newSSE(resp.Body)}
	return feed.New(unreadCode, r.next, cancel, func() { cancel(); _ = resp.Body.Close() }), nil
}

// unreadCode is how many events of a run of code wait to be taken: each may have some
// MiB.
const unreadCode = 4

// codeRun reads the events of a run of code.
type codeRun struct {
	c      *Client
	ctx    context.Context //nolint:containedctx // a run outlives the call that began it
	events sse
	ended  bool
}

func (r *codeRun) next() (e api.CodeEvent, err error) {
	if r.ended {
		return e, io.EOF
	}
	m, err := r.events.next()
	if fault.Is(err, fault.Upstream) {
		return e, err
	}
	if err != nil {
		return e, r.c.lost(r.ctx, err)
	}
	if err := json.Unmarshal(m.data, &e); err != nil || e.Type == "" {
		return e, fault.Wrap(fault.Upstream, errors.Join(errNoCodeEvent, err), "the server sent an event that can't be read")
	}
	r.ended = e.Type == api.CodeEnd
	return e, nil
}

var errNoCodeEvent = errors.New("not an event of a run of code")

// CreateCodeContext makes a context, in which code keeps what it defines. Errors:
// BoxNotFound, InvalidState (the box does not run), InvalidArgument, Execution (the box
// does not have the language), ResourceExhausted (the box has as many contexts as it
// may).
func (c *Client) CreateCodeContext(ctx context.Context, box string, o options.CodeContext) (api.CodeContext, error) {
	body := contextBody{Language: o.Language, WorkingDir: o.WorkingDir, User: o.User, Env: o.Env}
	return c.codeContext(ctx, request{method: http.MethodPost, body: body}, box, "", "contexts")
}

// CodeContexts returns the contexts of a box, newest first. Errors: BoxNotFound,
// InvalidState (the box does not run).
func (c *Client) CodeContexts(ctx context.Context, box string) ([]api.CodeContext, error) {
	path, err := c.boxPath(box, "", "contexts")
	if err != nil {
		return nil, err
	}
	var all struct {
		Contexts []api.CodeContext `json:"contexts"`
	}
	err = c.call(ctx, request{method: http.MethodGet, path: path, again: true}, &all)
	return all.Contexts, err
}

// CodeContext returns a context by its id. Errors: those of CodeContexts,
// ContextNotFound.
func (c *Client) CodeContext(ctx context.Context, box, id string) (api.CodeContext, error) {
	return c.onContext(ctx, request{method: http.MethodGet, again: true}, box, id, "")
}

// InterruptCode interrupts the code that a context runs, as control-C does. It does
// nothing between two runs. Errors: those of CodeContext.
func (c *Client) InterruptCode(ctx context.Context, box, id string) (api.CodeContext, error) {
	return c.onContext(ctx, request{method: http.MethodPost}, box, id, ":interrupt")
}

// RestartCodeContext ends the processes of a context and starts it anew, with nothing of
// what code has defined in it. Errors: those of CodeContext.
func (c *Client) RestartCodeContext(ctx context.Context, box, id string) (api.CodeContext, error) {
	return c.onContext(ctx, request{method: http.MethodPost}, box, id, ":restart")
}

// RemoveCodeContext ends a context with all of its processes. Errors: those of
// CodeContext.
func (c *Client) RemoveCodeContext(ctx context.Context, box, id string) error {
	_, err := c.onContext(ctx, request{method: http.MethodDelete, again: true}, box, id, "")
	return err
}

// onContext sends a request about a context; verb is added to the path.
func (c *Client) onContext(ctx context.Context, r request, box, id, verb string) (api.CodeContext, error) {
	if !options.IsCodeContext(id) { // it could lead elsewhere as a segment of a path
		return api.CodeContext{}, fault.New(fault.ContextNotFound, "no context %.40q", id)
	}
	return c.codeContext(ctx, r, box, verb, "contexts", id)
}

// codeContext sends a request whose reply is a context.
func (c *Client) codeContext(ctx context.Context, r request, box, verb string, path ...string) (about api.CodeContext, err error) {
	if r.path, err = c.boxPath(box, "", path...); err != nil {
		return api.CodeContext{}, err
	}
	r.path += verb
	err = c.call(ctx, r, &about)
	return about, err
}
