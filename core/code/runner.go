package code

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

const (
	// startTimeout bounds how long a language may take to start, and a context to
	// begin a run.
	startTimeout = 60 * time.Second
	// grace is how long code may take to end when it is interrupted. Then its
	// processes are killed.
	grace = 2 * time.Second
	// dying is how long the end of killed processes is waited for: those of a paused
	// box end when it is resumed.
	dying = 5 * time.Second
)

// runner has a context run code once, and reads what it answers. One goroutine calls its
// methods but for leave.
type runner struct {
	box    *core.Box
	kernel kernel
	reader *core.Reader
	buf    []byte
	// reading ends when abandon is called: the kernel does not end although it was
	// killed.
	reading context.Context //nolint:containedctx // a run outlives the call that began it
	abandon context.CancelFunc
	written chan struct{} // closed when the request was written, or could not be

	streams [2]stream
	frame   []byte          // the pieces of a frame that has not come to its end
	events  []api.CodeEvent // that have come and were not returned
	count   int             // of the run, which begins with the answer that tells it
	began   time.Time
	status  api.CodeStatus // that the kernel has told at the end
	said    []byte         // the beginning of what it printed before it began the run
	exit    *api.ExitStatus
	broken  error // how the kernel broke the protocol
	told    bool  // the last event was made

	mu       sync.Mutex
	over     bool           // nothing is left to stop
	stopping api.CodeStatus // why the code is being stopped; "" if it is not
	killed   bool
	timers   []*time.Timer
}

// stream is an output of the kernel.
type stream struct {
	splitter
	kind  api.CodeEventType
	ran   bool // the run has begun on this stream
	ended bool // and ended
	text  api.Characters
}

// begin sends the request and waits until the kernel has begun to run it.
func (r *runner) begin(ctx context.Context, o options.Code) (err error) {
	nonce := make([]byte, nonceSize/2)
	_, _ = rand.Read(nonce) // it never fails
	mark := append([]byte{markByte}, hex.EncodeToString(nonce)...)
	for i, kind := range []api.CodeEventType{api.CodeStdout, api.CodeStderr} {
		r.streams[i] = stream{splitter: splitter{mark: mark}, kind: kind}
	}
	if r.reader, err = r.kernel.Reader(r.reading); err != nil {
		close(r.written)
		return err
	}
	r.buf = make([]byte, core.OutputBuffer)
	go r.write(request(r.kernel, string(mark[1:]), o))
	defer context.AfterFunc(ctx, r.leave)()
	late := r.after(startTimeout, func() { r.stop(api.CodeTimedOut) })
	for r.count == 0 {
		if err := r.read(); err != nil {
			return err
		}
		if r.exit != nil {
			return r.unstarted(ctx)
		}
	}
	late.Stop()
	r.began = time.Now()
	if r.why() != "" {
		r.again() // kernels take no notice of what comes before the code begins
	}
	if o.Timeout > 0 {
		r.after(o.Timeout, func() { r.stop(api.CodeTimedOut) })
	}
	return nil
}

// request returns all that the kernel reads to run code.
func request(k kernel, nonce string, o options.Code) []byte {
	p := programs[k.about.Language]
	var b strings.Builder
	if k.fresh {
		b.WriteString(p.source)
	}
	b.WriteString(p.each + nonce + "\x00" + strconv.Itoa(len(o.Env)) + "\x00")
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		b.WriteString(name + "=" + o.Env[name] + "\x00")
	}
	b.WriteString(o.Code + "\x00")
	return []byte(b.String())
}

// write writes the request. The kernel reads it while its output is read: it ends with
// the kernel, or when close has set a deadline.
func (r *runner) write(p []byte) {
	defer close(r.written)
	if in := r.kernel.Stdin(); in != nil {
		_, _ = in.Write(p) // if it fails, the kernel has ended, which its reader is told
	}
}

// unstarted says why the kernel has ended before it began the run.
func (r *runner) unstarted(ctx context.Context) error {
	about, said := r.kernel.about, strings.ToValidUTF8(strings.TrimSpace(string(r.said)), "\uFFFD")
	name := programs[about.Language].argv[0]
	switch {
	case ctx.Err() != nil:
		return fault.Of(ctx.Err())
	case r.why() == api.CodeTimedOut:
		return fault.New(fault.Timeout, "context %s did not begin to run the code in %v, and its process was killed", about.ID, startTimeout)
	case r.exit.Reason == api.ReasonNotFound || r.exit.Reason == api.ReasonNotExecutable:
		return fault.New(fault.Execution, "code in %s can't be run: %s. Use an image with %s", about.Language, r.exit.Message, name)
	case r.exit.Reason == api.ReasonBoxStopped || r.exit.Status == api.ExecLost:
		return fault.New(fault.InvalidState, "box %s has stopped", r.box.ID())
	}
	return fault.New(fault.Execution, "the %s of the box could not run code: it %s: %s", name, ending(*r.exit), said)
}

// dead tells whether the kernel has ended by itself.
func (r *runner) dead() bool { return r.exit != nil && r.why() == "" }

// next returns the next event; io.EOF behind the last one.
func (r *runner) next() (api.CodeEvent, error) {
	for len(r.events) == 0 {
		if r.told {
			return api.CodeEvent{}, io.EOF
		}
		if r.exit != nil || r.streams[0].ended && r.streams[1].ended { // perhaps since begin
			r.finish()
		} else if err := r.read(); err != nil {
			return api.CodeEvent{}, err
		}
	}
	e := r.events[0]
	r.events = r.events[1:]
	return e, nil
}

// read reads a piece of output and notes what it tells. A kernel that breaks the protocol
// is killed, and its end is read next.
func (r *runner) read() error {
	n, stderr, err := r.reader.Read(r.buf)
	if errors.Is(err, io.EOF) {
		status := r.reader.Status()
		r.exit = &status
		return nil
	}
	if err != nil {
		return r.unending(err)
	}
	i := 0
	if stderr {
		i = 1
	}
	if err := r.streams[i].split(r.buf[:n], output{r, &r.streams[i]}); err != nil {
		r.broken = err
		r.stop(api.CodeLost)
		r.kill()
		return r.discard()
	}
	return nil
}

// unending is the error that a killed process does not end.
func (r *runner) unending(err error) error {
	if r.reading.Err() == nil {
		return err
	}
	return fault.New(fault.Timeout, "the processes of context %s were killed and do not end: they will when its box is resumed, if it is paused", r.kernel.about.ID)
}

// discard reads what is left until the kernel has ended.
func (r *runner) discard() error {
	for r.exit == nil {
		_, _, err := r.reader.Read(r.buf)
		if errors.Is(err, io.EOF) {
			status := r.reader.Status()
			r.exit = &status
		} else if err != nil {
			return r.unending(err)
		}
	}
	return nil
}

// output takes what is found in a stream.
type output struct {
	r *runner
	s *stream
}

// maxSaid bounds what is kept of what a kernel printed before it began a run, in bytes.
const maxSaid = 1 << 10

func (o output) text(p []byte) {
	switch {
	case o.s.ended: // of a child that has gone on
	case !o.s.ran:
		o.r.said = append(o.r.said, p[:min(len(p), maxSaid-len(o.r.said))]...)
	default:
		o.r.printed(o.s.kind, o.s.text.Cut(p))
	}
}

func (r *runner) printed(kind api.CodeEventType, p []byte) {
	if len(p) > 0 {
		r.events = append(r.events, api.CodeEvent{Type: kind, Text: strings.ToValidUTF8(string(p), "\uFFFD")})
	}
}

func (o output) piece(body []byte, last bool) error {
	if o.s.kind == api.CodeStderr {
		o.mark()
		return nil
	}
	if len(o.r.frame)+len(body) > MaxFrame {
		return errProtocol("an answer of more than %d bytes", MaxFrame)
	}
	o.r.frame = append(o.r.frame, body...)
	if !last {
		return nil
	}
	f, err := readFrame(o.r.frame)
	if o.r.frame = o.r.frame[:0]; cap(o.r.frame) > maxKept {
		o.r.frame = nil
	}
	if err != nil {
		return err
	}
	return o.r.answered(f, o)
}

// maxKept is how much memory is kept for the next frame, in bytes.
const maxKept = 64 << 10

// mark notes that the run begins or ends on the stream.
func (o output) mark() {
	if o.s.ran {
		o.r.printed(o.s.kind, o.s.text.Left())
		o.s.ended = true
	}
	o.s.ran = true
}

// answered notes an answer of the kernel.
func (r *runner) answered(f frame, o output) error {
	if f.Kind == frameBegin && f.Count == r.count && !o.s.ended {
		return nil // the kernel was interrupted when it had told it
	}
	if (f.Kind == frameBegin) == o.s.ran || o.s.ended {
		return errProtocol("an answer of the kind %s at the wrong time", f.Kind)
	}
	switch f.Kind {
	case frameBegin:
		r.count = f.Count
		start := api.CodeEvent{Type: api.CodeStart, ContextID: r.kernel.about.ID, ExecutionCount: f.Count, Fresh: r.kernel.fresh}
		r.events = slices.Insert(r.events, 0, start) // what the code prints on the other stream may be read before
		o.mark()
	case frameResult:
		r.events = append(r.events, api.CodeEvent{Type: api.CodeShown, Result: f.Result})
	case frameError:
		r.events = append(r.events, api.CodeEvent{Type: api.CodeRaised, Error: f.Error})
	case frameEnd:
		r.status = f.Status
		o.mark()
	}
	return nil
}

// raise adds an error of ours.
func (r *runner) raise(name, value string) {
	r.events = append(r.events, api.CodeEvent{Type: api.CodeRaised, Error: &api.CodeError{Name: name, Value: value, Traceback: name + ": " + value + "\n"}})
}

// finish makes the last event. A context whose process has ended is restarted first.
func (r *runner) finish() {
	stopping := r.stopped()
	ms := time.Since(r.began).Milliseconds()
	end := api.CodeEvent{Type: api.CodeEnd, Status: r.status, DurationMS: &ms}
	if stopping != "" {
		end.Status = stopping
	}
	if r.exit != nil {
		r.flush()
		if end.Status != api.CodeTimedOut {
			end.Status = api.CodeLost
		}
		end.Restarted = r.restart()
		r.raise("ContextLost", r.lost(end))
	}
	r.events = append(r.events, end)
	r.told = true
}

// flush makes events of what the kernel printed last.
func (r *runner) flush() {
	for i := range r.streams {
		if s := &r.streams[i]; s.ran && !s.ended {
			r.printed(s.kind, append(s.text.Left(), s.rest()...))
		}
	}
}

// lost says why a context has lost its state.
func (r *runner) lost(end api.CodeEvent) string {
	why := "its process " + ending(*r.exit)
	if r.broken != nil {
		why = r.broken.Error()
	} else if r.killed {
		why = fmt.Sprintf("the code did not end within %v of being interrupted, and its processes were killed", grace)
	}
	if end.Restarted {
		return why + ". What it had defined is lost: context " + r.kernel.about.ID + " has begun anew"
	}
	return why + ". What it had defined is lost"
}

// ending says how a process ended.
func ending(s api.ExitStatus) string {
	switch {
	case s.Status == api.ExecCanceled:
		return "was ended: the context was removed or restarted"
	case s.Reason == api.ReasonOOMKilled:
		return "was killed because the box is out of memory"
	case s.Reason == api.ReasonBoxStopped || s.Status == api.ExecLost:
		return "was ended with its box"
	case s.Signal != 0:
		return "was ended by signal " + strconv.Itoa(s.Signal) + " (" + unix.SignalName(unix.Signal(s.Signal)) + ")"
	}
	return "ended with exit code " + strconv.Itoa(s.ExitCode)
}

// restart ends what is left of the context's processes and starts it anew. It does not
// where the context or the box was ended by request, nor where the process has ended before
// it ran anything at all: it would end in the same way again. It reports whether it did.
func (r *runner) restart() bool {
	_ = r.kernel.HangUp(context.Background(), 0)
	if r.kernel.fresh && r.count == 0 || r.exit.Status == api.ExecCanceled || r.exit.Reason == api.ReasonBoxStopped || r.exit.Status == api.ExecLost {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, err := New().ready(ctx, r.box, r.kernel.about.ID, like(r.kernel.Record(), r.kernel.about))
	return err == nil // if not, the next run makes it or says why it can't
}
