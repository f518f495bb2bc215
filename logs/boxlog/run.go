package boxlog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/logs/ingest"
	"sandbox/spool"
)

// Names of rows about a main command.
const (
	commandStarted   = "box.command.started"
	commandRestarted = "box.command.restarted"
	commandEnded     = "box.command.ended"
	outputDropped    = "box.output.dropped"
)

// Attributes of rows about a main command: that they are, and how many bytes its stream has
// up to the end of what a row holds.
const (
	mainKey   = "main"
	offsetKey = "exec.offset"
)

// run makes rows of a run of a main command: of its start, of each line that it prints,
// and of its end.
type run struct {
	output
	e    *spool.Exec
	now  ran // what is in the table once the rows are
	took int // bytes read since the last rest
}

func (s *service) newRun(e *spool.Exec, at ran, began string) *run {
	rec := e.Record()
	u := &run{e: e, output: output{r: s.r, exec: rec.ID, main: true, like: s.row(time.Time{}), taken: at.Bytes, whole: at.Bytes}, now: at}
	if !at.Began {
		u.now.Began = true
		u.event(rec.CreatedAt, began, strings.Replace(began, "box.command.", "main command ", 1), info)
	}
	return u
}

// row returns a row about the box.
func (s *service) row(at time.Time) ingest.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return row(s.box, s.rec.Options.Name, at)
}

// event adds a row that says what has happened to the run.
func (u *run) event(at time.Time, name, body string, severity uint8, more ...ingest.Pair) {
	one := u.like
	one.Nanoseconds, one.EventName, one.Body = at.UnixNano(), name, body
	one.Severity, one.SeverityText = severity, severities[severity]
	one.Attributes = append([]ingest.Pair{{Key: "exec.id", Value: u.exec}, {Key: mainKey, Value: "true"}}, more...)
	u.rows = append(u.rows, one)
}

// maxBatch is how many bytes of output are stored together, unless they make [maxRows]
// before.
const maxBatch = 256 << 10

// read makes rows of the output that is there. It returns true if nothing more comes: then
// the last row says how the run has ended. Output that can't be read counts as lost.
func (u *run) read(reader *spool.Observer) (ended bool) {
	buffer := buffers.Get().(*[spool.MaxEvent]byte)
	defer buffers.Put(buffer)
	for n := 0; n < maxBatch && len(u.rows) < maxRows; {
		stream, got, err := reader.Next(buffer[:])
		var missed spool.Missed
		switch {
		case errors.As(err, &missed):
			u.skip(missed.At[spool.Stdout], missed.At[spool.Stderr])
			continue
		case err != nil:
			u.r.Log.Warn("the output of a main command can't be read for the log table", "exec_id", u.exec, "error", err)
			u.end("it can't be read")
			return true
		case got == 0:
			ended, lost := reader.Ended()
			if ended && lost {
				u.end("the disk was full")
			} else if ended {
				u.end("")
			}
			u.now.Bytes = u.whole
			return ended
		}
		n, u.took, u.left = n+got, u.took+got, got
		u.add(stream, buffer[:got])
	}
	u.now.Bytes = u.whole
	return false
}

// skip notes that the streams go on behind output that is not kept any more.
func (u *run) skip(stdout, stderr int64) {
	for s, to := range [2]int64{stdout, stderr} {
		left := to - u.taken[s]
		if left <= 0 {
			continue
		}
		if len(u.lines[s]) > 0 {
			u.line(spool.Stream(s))
		}
		u.taken[s], u.whole[s] = to, to
		u.event(time.Now(), outputDropped, fmt.Sprintf("%d bytes of %s were dropped before they were stored", left, streams[s]), warned,
			ingest.Pair{Key: "stream", Value: streams[s]}, ingest.Pair{Key: offsetKey, Value: strconv.FormatInt(to, 10)})
	}
	u.now.Bytes = u.whole
}

// drop leaves out all that the run has printed and was not read, and ends it.
func (u *run) drop() {
	rec := u.e.Record()
	u.skip(*rec.StdoutBytes, *rec.StderrBytes)
	u.end("")
}

// end makes rows of lines whose end has not come, and of the end of the run. lost says why
// some of the output is missing; "" means that nothing is.
func (u *run) end(lost string) {
	for s := range u.lines {
		if len(u.lines[s]) > 0 {
			u.line(spool.Stream(s))
		}
	}
	u.now.Bytes, u.now.Ended = u.whole, true
	rec := u.e.Record()
	if lost != "" {
		u.event(time.Now(), outputDropped, "the end of the output is lost: "+lost, warned)
	}
	body, severity, more := "main command ended", uint8(warned), []ingest.Pair(nil)
	if rec.ExitCode != nil {
		body = fmt.Sprintf("main command ended with exit code %d", *rec.ExitCode)
		more = append(more, ingest.Pair{Key: "exit_code", Value: strconv.Itoa(*rec.ExitCode)})
	}
	if rec.Reason != nil {
		more = append(more, ingest.Pair{Key: "reason", Value: string(*rec.Reason)})
	}
	asked := rec.Reason != nil && (*rec.Reason == api.ReasonBoxStopped || *rec.Reason == api.ReasonCanceled)
	if rec.Status == api.ExecSucceeded || asked {
		severity = info
	}
	at := time.Now()
	if rec.FinishedAt != nil {
		at = *rec.FinishedAt
	}
	u.event(at, commandEnded, body, severity, more...)
}

// healthRow returns the row for a main command whose health has changed.
func healthRow(rec core.Record) ingest.Row {
	severity := uint8(info)
	if rec.Health.Status == api.Unhealthy {
		severity = failed
	}
	one := event(row(rec.ID, rec.Options.Name, rec.UpdatedAt), string(rec.Health.Status), severity)
	if rec.Health.Status == api.Unhealthy && rec.Health.Output != "" {
		one.Body += ": " + rec.Health.Output
	}
	one.Attributes = []ingest.Pair{{Key: "exec.id", Value: rec.Command.ExecID}, {Key: mainKey, Value: "true"}}
	return one
}
