package boxlog

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/logs/ingest"
	"sandbox/spool"
)

// Follow writes an exec's output from now on. It returns at once.
func (r *Recorder) Follow(e *spool.Exec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	reader, err := e.Watch() // watched here, because output may come before the goroutine below runs
	if err != nil {
		r.Log.Warn("the output of an exec can't be read for the log table", "exec_id", e.Record().ID, "error", err)
		return
	}
	r.following.Go(func() {
		defer reader.Close()
		r.follow(e.Record(), reader)
	})
}

// output turns the output of one exec into rows.
type output struct {
	r     *Recorder
	like  ingest.Row // the members that all rows share: all but time, body and attributes
	exec  string
	tty   bool
	main  bool      // it is a run of a main command, whose rows are taken by who reads it
	taken [2]int64  // of a main command: how many bytes of each stream were added,
	whole [2]int64  // and how many of these are in rows
	lines [2][]byte // for each stream, the line whose end has not come yet
	left  int       // how many more bytes become rows
	rows  []ingest.Row
}

func (r *Recorder) follow(rec api.Exec, reader *spool.Events) {
	o := r.output(rec)
	for o.left > 0 && !reader.Done() && reader.Wait(r.ctx) == nil {
		if !o.take(reader) {
			return
		}
	}
	o.flush()
}

func (r *Recorder) output(e api.Exec) *output {
	return &output{r: r, exec: e.ID, tty: e.TTY, left: maxOutput, like: row(e.BoxID, r.Name(r.ctx, e.BoxID), time.Time{})}
}

// buffers holds memory that is used only while there is output to read, so that
// the goroutines that wait for output hold none.
var buffers = sync.Pool{New: func() any { return new([spool.MaxEvent]byte) }}

var streams = [...]string{spool.Stdout: api.Stdout, spool.Stderr: api.Stderr}

// take reads the output that is there. It returns false if no more can be read.
func (o *output) take(reader *spool.Events) bool {
	buffer := buffers.Get().(*[spool.MaxEvent]byte)
	defer buffers.Put(buffer)
	for o.left > 0 {
		event, err := reader.Next(buffer[:])
		if err != nil {
			o.r.Log.Warn("the output of an exec can't be read for the log table", "exec_id", o.exec, "error", err)
			return false
		}
		if event == nil {
			break
		}
		switch event.Kind {
		case spool.Log:
			o.add(event.Stream, event.Data)
		case spool.Gap:
			o.r.Log.Warn("output was dropped before it was in the log table", "exec_id", o.exec, "from", event.From, "to", event.To)
		case spool.Exit:
			o.flush()
			return true
		}
	}
	return o.push()
}

// add makes rows of the lines that are now complete.
func (o *output) add(s spool.Stream, data []byte) {
	for len(data) > 0 && o.left > 0 {
		data = data[:min(len(data), o.left)]
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		o.left -= len(data) - len(rest)
		o.taken[s] += int64(len(data) - len(rest))
		data = rest
		o.lines[s] = append(o.lines[s], line...)
		if whole || len(o.lines[s]) >= maxLine {
			o.line(s)
		}
	}
}

// line makes a row of a line.
func (o *output) line(s spool.Stream) {
	one := o.like
	one.Nanoseconds = time.Now().UnixNano()
	one.Attributes = []ingest.Pair{{Key: "exec.id", Value: o.exec}, {Key: "stream", Value: streams[s]}}
	line := bytes.TrimSuffix(o.lines[s], []byte("\r"))
	if o.tty {
		line = shown(line)
		one.Attributes = append(one.Attributes, ingest.Pair{Key: "tty", Value: "true"})
	}
	if o.main {
		o.whole[s] = o.taken[s]
		one.Attributes = append(one.Attributes, ingest.Pair{Key: mainKey, Value: "true"}, ingest.Pair{Key: offsetKey, Value: strconv.FormatInt(o.whole[s], 10)})
	}
	one.Body = string(line)
	o.lines[s] = o.lines[s][:0]
	if o.rows = append(o.rows, one); len(o.rows) >= maxChunk && !o.main {
		o.push()
	}
}

// push hands over the rows. It returns false if that is not possible any more: then
// the rest of the output becomes no rows either.
func (o *output) push() bool {
	rows := o.rows
	o.rows = nil
	if !o.r.push(o.exec, rows) {
		o.left = 0
		return false
	}
	return true
}

// flush also makes rows of lines whose end has not come.
func (o *output) flush() {
	for s := range o.lines {
		if len(o.lines[s]) > 0 {
			o.line(spool.Stream(s))
		}
	}
	o.push()
}
