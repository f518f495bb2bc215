package httpd

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/spool"
)

const (
	// stalled bounds how long a client may take to read one piece of a stream.
	// Then it is cut off; when it comes back it goes on where it was.
	stalled = 60 * time.Second
	// batch is how many bytes of events are written at once when many wait.
	batch = 32 << 10
)

// events streams an exec's output as Server-Sent Events: first the stored output,
// then new output as it comes, and last the exit.
func (s *Server) events(w http.ResponseWriter, r *request) error {
	after, err := r.lastEvent()
	if err != nil {
		return err
	}
	e, err := s.spooled(r)
	if err != nil {
		return err
	}
	reader, err := e.Events(after)
	if err != nil {
		return err
	}
	defer reader.Close()
	ctx, cancel := s.streaming(r)
	defer cancel()
	out := eventStream{eventWriter: beginEvents(w), e: e, heartbeat: s.Heartbeat}
	err = out.run(ctx, reader)
	if errors.Is(err, errGone) { // nobody is left to tell
		return nil
	}
	return err
}

// streaming returns a context that ends with the request, or when the server
// begins to close.
func (s *Server) streaming(r *request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() { stop(); cancel() }
}

// errEnds is what a request is answered that the end of the server breaks off.
func errEnds() error { return fault.New(fault.Unavailable, "the service ends: come again") }

// brokenOff returns err, unless that is only that the server ends.
func (s *Server) brokenOff(err error) error {
	if fault.Is(err, fault.Canceled) && s.draining.Err() != nil {
		return errEnds()
	}
	return err
}

// eventsType is the media type of Server-Sent Events.
const eventsType = "text/event-stream"

// eventWriter writes events to one client.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// beginEvents writes the head of a reply of events.
func beginEvents(w http.ResponseWriter) eventWriter {
	w.Header().Set("Content-Type", eventsType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return eventWriter{w, http.NewResponseController(w)}
}

// eventStream writes the events of an exec.
type eventStream struct {
	eventWriter
	e         *spool.Exec
	heartbeat time.Duration
}

// eventBuffers are held only while there are events to send: thousands of streams
// may wait, and need none.
var eventBuffers = sync.Pool{New: func() any {
	return &eventBuffer{data: make([]byte, spool.MaxEvent)}
}}

type eventBuffer struct {
	data []byte
	text []byte
}

// run writes events until the exit, or until ctx ends. It flushes only before it
// waits: so the head of the reply goes out together with the stored events, and
// the last events together with the end of the reply.
func (o eventStream) run(ctx context.Context, reader *spool.Events) error {
	err := o.send(ctx, reader)
	for err == nil && !reader.Done() && ctx.Err() == nil {
		if o.flush() != nil { // the head, at least, so that the client knows it is connected
			return errGone
		}
		wait, cancel := context.WithTimeout(ctx, o.heartbeat)
		quiet := reader.Wait(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			err = o.write([]byte(": the service ends\n\n"))
		case quiet != nil:
			err = o.write([]byte(": alive\n\n"))
		default:
			err = o.send(ctx, reader)
		}
	}
	return err
}

// errGone means that the client no longer reads the stream.
var errGone = errors.New("the client has disconnected")

// send writes all events that have come so far.
func (o eventStream) send(ctx context.Context, reader *spool.Events) error {
	buf := eventBuffers.Get().(*eventBuffer)
	defer eventBuffers.Put(buf)
	buf.text = buf.text[:0]
	for ctx.Err() == nil {
		event, err := reader.Next(buf.data)
		if err != nil {
			return err
		}
		if event != nil {
			buf.text = o.append(buf.text, event)
		}
		if event != nil && len(buf.text) < batch {
			continue
		}
		if err := o.write(buf.text); err != nil {
			return err
		}
		buf.text = buf.text[:0]
		if event == nil {
			return nil
		}
	}
	return nil
}

// write writes to the client. Errors: errGone.
func (o eventWriter) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(stalled))
	if _, err := o.w.Write(p); err != nil {
		return errGone
	}
	return nil
}

func (o eventWriter) flush() error { return o.control.Flush() }

// append appends an event to b, in the form of the contract, section 3.
func (o eventStream) append(b []byte, event *spool.Event) []byte {
	switch event.Kind {
	case spool.Gap:
		b = appendHead(b, "gap", event.Seq)
		b = strconv.AppendInt(append(b, `{"from":`...), event.From, 10)
		b = strconv.AppendInt(append(b, `,"to":`...), event.To, 10)
		b = strconv.AppendInt(append(b, `,"stdout_from":`...), event.Next[spool.Stdout], 10)
		b = strconv.AppendInt(append(b, `,"stderr_from":`...), event.Next[spool.Stderr], 10)
	case spool.Exit:
		b = o.appendExit(appendHead(b, "exit", event.Seq), event.Seq)
	case spool.Log:
		b = appendHead(b, "log", event.Seq)
		b = strconv.AppendInt(append(b, `{"seq":`...), event.Seq, 10)
		b = append(append(append(b, `,"stream":"`...), streamNames[event.Stream]...), `","data":`...)
		b = appendData(b, event.Data)
	}
	return append(b, "}\n\n"...)
}

var streamNames = [2]string{api.Stdout, api.Stderr}

func appendHead(b []byte, kind string, seq int64) []byte {
	b = append(append(append(b, "event: "...), kind...), "\nid: "...)
	return append(strconv.AppendInt(b, seq, 10), "\ndata: "...)
}

func appendData(b, data []byte) []byte {
	if api.IsUTF8(data) {
		b, _ = jsontext.AppendQuote(b, data) // it fails only for invalid UTF-8
		return b
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, `","encoding":"base64"`...)
}

// appendExit appends the data of the event exit, except for the closing brace.
func (o eventStream) appendExit(b []byte, seq int64) []byte {
	rec := o.e.Record()
	doc, _ := encode(api.Exit{
		Seq: seq, ExitCode: rec.ExitCode, Signal: rec.Signal, Status: rec.Status, Reason: rec.Reason,
		StdoutBytes: rec.StdoutBytes, StderrBytes: rec.StderrBytes,
	})
	return append(b, doc[:len(doc)-1]...)
}
