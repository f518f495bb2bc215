package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"sandbox/api"
	"sandbox/core/fault"
)

// Events returns a command's past and future output, up to its [api.Exit]. It
// begins after the event with the number after; 0 means from the beginning. If
// the connection is lost, it connects again and continues where it was, so that
// no event is lost or returned twice. The last pair has the error, if there is
// one: BoxNotFound, ExecNotFound, Unavailable, and Engine beside an [api.Exit]
// without an exit code, because the box's init died under the command.
func (c *Client) Events(ctx context.Context, box, id string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if err := c.events(ctx, box, id, after, yield); err != nil {
			yield(api.Event{}, err)
		}
	}
}

// events yields events until the exit, or until yield returns false.
func (c *Client) events(ctx context.Context, box, id string, after int64, yield func(api.Event, error) bool) error {
	if err := checkExec(id); err != nil {
		return err
	}
	path, err := c.boxPath(box, "", "exec", id, "events")
	if err != nil {
		return err
	}
	for idle := 0; ; idle++ {
		last := after
		resp, err := c.send(ctx, request{method: http.MethodGet, path: path, query: resume(after), again: true})
		if err != nil {
			return err
		}
		ended, err := readEvents(resp.Body, &after, yield)
		_ = resp.Body.Close()
		switch {
		case ended:
			return nil
		case fault.Is(err, fault.Upstream):
			return err
		case after > last:
			idle = 0
		}
		if idle+1 >= tries || !sleep(ctx, afterLost) {
			return c.lost(ctx, err)
		}
	}
}

// resume returns the query of a stream that begins after an event.
func resume(after int64) url.Values {
	if after == 0 {
		return nil
	}
	return url.Values{"after": {strconv.FormatInt(after, 10)}}
}

// readEvents yields the events of one connection, and sets after to the number
// of the last one. ended reports that nothing more is to be read.
func readEvents(stream io.Reader, after *int64, yield func(api.Event, error) bool) (ended bool, err error) {
	lines := newSSE(stream)
	for {
		m, err := lines.next()
		if err != nil {
			return false, err
		}
		e, seq, err := m.event()
		if err != nil {
			return false, fault.Wrap(fault.Upstream, err, "the server sent an event that can't be read")
		}
		if e == (api.Event{}) || seq != 0 && seq <= *after {
			continue // of a kind that this client does not know, or yielded before
		}
		*after = max(*after, seq)
		if e.Exit != nil {
			yield(e, known(e.Exit.ExitCode))
			return true, nil
		}
		if !yield(e, nil) {
			return true, nil
		}
	}
}

// event decodes a message. It returns the event, or a zero one if its kind is not
// known, and its number.
func (m message) event() (e api.Event, seq int64, err error) {
	switch m.kind {
	case "log":
		e.Log, err = m.log()
		if err == nil {
			seq = e.Log.Seq
		}
	case "gap":
		e.Gap = &api.Gap{}
		err = json.Unmarshal(m.data, e.Gap)
		seq = e.Gap.To
	case "exit":
		e.Exit = &api.Exit{}
		err = json.Unmarshal(m.data, e.Exit)
	}
	return e, seq, err
}

func (m message) log() (*api.Log, error) {
	var l api.Log
	if err := json.Unmarshal(m.data, &l); err != nil {
		return nil, err
	}
	if l.Seq < 1 || l.Stream != api.Stdout && l.Stream != api.Stderr {
		return nil, fmt.Errorf("the server sent output without a number or a stream")
	}
	_, err := l.Bytes()
	return &l, err
}
