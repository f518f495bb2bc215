package httpd

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
)

// progressEvery is the time between two looks at the progress of a pull: a layer
// reports it for every piece that comes.
const progressEvery = 100 * time.Millisecond

// imageWork pulls or pushes an image and returns the document of what it has made.
// progress may be nil; it is called often and must be quick.
type imageWork func(ctx context.Context, progress func(api.ImageProgress)) (any, error)

// workOnImage does work and answers with what it has made. A client that accepts
// Server-Sent Events is told the progress; made is the name of the last event.
func (s *Server) workOnImage(w http.ResponseWriter, r *request, made string, work imageWork) error {
	if strings.Contains(r.Header.Get("Accept"), eventsType) {
		return s.streamWork(w, r, made, work)
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	doc, err := work(ctx, nil)
	if err != nil {
		return s.brokenOff(err)
	}
	return writeJSON(w, http.StatusOK, doc)
}

// streamWork does work and sends its progress as events, the last of which is what
// it has made or the failure. A slow client misses progress and does not hold the
// work up. One that goes away ends it.
func (s *Server) streamWork(w http.ResponseWriter, r *request, made string, work imageWork) error {
	ctx, cancel := s.streaming(r)
	defer cancel()
	out := beginEvents(w)
	_ = out.flush() // the head, so that the client knows it is connected; if it fails, the next write does
	var news pullNews
	pulling, ended := context.WithCancel(ctx)
	defer ended()
	var showing sync.WaitGroup
	showing.Go(func() {
		if news.show(pulling, out, s.Heartbeat) != nil {
			cancel()
		}
	})
	doc, err := work(ctx, news.note)
	ended()
	showing.Wait()
	last, err := s.lastOfWork(r, made, doc, s.brokenOff(err))
	if err == nil {
		_ = out.write(append(news.events(), last...)) // if it fails, nobody is left to tell
	}
	return err
}

// lastOfWork returns the last event of work on an image.
func (s *Server) lastOfWork(r *request, made string, what any, err error) ([]byte, error) {
	if err == nil {
		doc, err := encode(what)
		return appendEvent(nil, made, doc), err
	}
	f, status := envelope{}.told(r, err)
	if status >= http.StatusInternalServerError {
		s.logFailure(r, fault.Of(err))
	}
	doc, _, err := envelope{}.document(r, f, status)
	return appendEvent(nil, api.PullError, doc), err
}

// pullNews is the progress that a client has not been sent: the last of each
// layer.
type pullNews struct {
	mu     sync.Mutex
	layers []api.ImageProgress
}

func (n *pullNews) note(p api.ImageProgress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.layers, func(other api.ImageProgress) bool { return other.Layer == p.Layer })
	if at < 0 {
		n.layers = append(n.layers, p)
		return
	}
	n.layers[at] = p
}

// some tells whether there is news.
func (n *pullNews) some() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.layers) > 0
}

// events takes the news, as the text of events.
func (n *pullNews) events() (text []byte) {
	n.mu.Lock()
	layers := n.layers
	n.layers = nil
	n.mu.Unlock()
	for _, p := range layers {
		if doc, err := encode(p); err == nil { // numbers and words: it is always nil
			text = appendEvent(text, api.PullProgress, doc)
		}
	}
	return text
}

// show sends the news until ctx ends, and a sign of life if there are none for as
// long as heartbeat. Errors: errGone.
func (n *pullNews) show(ctx context.Context, out eventWriter, heartbeat time.Duration) error {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			text := n.events()
			if text == nil && now.Sub(last) < heartbeat {
				continue
			}
			if text == nil {
				text = []byte(": alive\n\n")
			}
			if out.write(text) != nil || out.flush() != nil {
				return errGone
			}
			last = now
		}
	}
}

// appendEvent appends an event without a number to b.
func appendEvent(b []byte, kind string, doc []byte) []byte {
	b = append(append(append(b, "event: "...), kind...), "\ndata: "...)
	return append(append(b, doc...), "\n\n"...)
}
