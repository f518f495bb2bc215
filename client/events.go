package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"sandbox/core/fault"
)

// Event is one of what happens to a command. Exactly one member is set.
type Event struct {
	Log  *Log
	Gap  *Gap
	Exit *Exit
}

// Log is output of a command.
type Log struct {
	Seq    int64 // of the event, from 1
	Stderr bool
	Data   []byte
}

// Gap tells that output was dropped before it could be read: the events From
// to To. What comes next lies behind as many bytes of each stream.
type Gap struct {
	From       int64 `json:"from"`
	To         int64 `json:"to"`
	StdoutFrom int64 `json:"stdout_from"`
	StderrFrom int64 `json:"stderr_from"`
}

// Exit is the end of a command, and the last event.
type Exit struct {
	Seq         int64  `json:"seq"`
	ExitCode    *int   `json:"exit_code"`
	Signal      *int   `json:"signal"`
	Status      string `json:"status"`
	Reason      string `json:"reason"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
}

// Events returns what a command has put out, and then what it puts out, from
// behind the event after (0: from the beginning), up to its [Exit]. A
// connection that was lost is made again, and the reading goes on where it
// was, none lost and none twice. The last pair has the error, if there is one:
// BoxNotFound, ExecNotFound, Unavailable.
func (c *Client) Events(ctx context.Context, box, id string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := c.events(ctx, box, id, after, yield); err != nil {
			yield(Event{}, err)
		}
	}
}

// events reads until the exit, or until yield wants no more.
func (c *Client) events(ctx context.Context, box, id string, after int64, yield func(Event, error) bool) error {
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

// resume is the query of a stream that goes on behind an event.
func resume(after int64) url.Values {
	if after == 0 {
		return nil
	}
	return url.Values{"after": {strconv.FormatInt(after, 10)}}
}

// readEvents yields the events of a stream and counts them in after. ended
// tells that there is nothing more to read.
func readEvents(stream io.Reader, after *int64, yield func(Event, error) bool) (ended bool, err error) {
	lines := newSSE(stream)
	for {
		m, err := lines.next()
		if err != nil {
			return false, err
		}
		e, seq, err := m.event()
		if err != nil {
			return false, fault.Wrap(fault.Upstream, err, "an event that can't be read")
		}
		if e == (Event{}) || seq != 0 && seq <= *after {
			continue // of a kind that came later than this client, or read before
		}
		*after = max(*after, seq)
		if !yield(e, nil) || e.Exit != nil {
			return true, nil
		}
	}
}

// event reads the document of a message, and its sequence number.
func (m message) event() (e Event, seq int64, err error) {
	switch m.kind {
	case "log":
		e.Log, err = m.log()
		if err == nil {
			seq = e.Log.Seq
		}
	case "gap":
		e.Gap = &Gap{}
		err = json.Unmarshal(m.data, e.Gap)
		seq = e.Gap.To
	case "exit":
		e.Exit = &Exit{}
		err = json.Unmarshal(m.data, e.Exit)
	}
	return e, seq, err
}

func (m message) log() (*Log, error) {
	var d struct {
		Seq      int64  `json:"seq"`
		Stream   string `json:"stream"`
		Data     string `json:"data"`
		Encoding string `json:"encoding"`
	}
	if err := json.Unmarshal(m.data, &d); err != nil {
		return nil, err
	}
	if d.Seq < 1 || d.Stream != "stdout" && d.Stream != "stderr" {
		return nil, fmt.Errorf("output without a number or a stream")
	}
	l := &Log{Seq: d.Seq, Stderr: d.Stream == "stderr", Data: []byte(d.Data)}
	var err error
	if d.Encoding == "base64" {
		l.Data, err = base64.StdEncoding.DecodeString(d.Data)
	}
	return l, err
}
