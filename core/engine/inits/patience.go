package inits

import (
	"errors"
	"os"
	"time"

	"sandbox/api"
)

// patience reads what a child in a box sends, until a time has passed since since. The
// time in which the box is paused does not count, because the child stands still then.
type patience struct {
	from  *os.File
	limit time.Duration
	since time.Time // zero: without end
	// paused tells whether the box is paused, or else when its record was changed last,
	// as by a resume.
	paused func() (now bool, changed time.Time)
}

// patient returns what reads from a file of the transfer, for at most answerTimeout.
func (t *transfer) patient(from *os.File) *patience {
	return &patience{from: from, limit: answerTimeout, paused: func() (bool, time.Time) {
		b, err := t.c.boxes.Get(t.ctx, t.id)
		if err != nil {
			return false, time.Time{}
		}
		return b.Status == api.Paused, b.UpdatedAt
	}}
}

// Read implements [io.Reader].
func (p *patience) Read(b []byte) (int, error) {
	for {
		var deadline time.Time
		if !p.since.IsZero() {
			deadline = p.since.Add(p.limit)
		}
		if err := p.from.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		n, err := p.from.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !p.again() {
			return n, err
		}
	}
}

// again has the time begin anew if the box is or was paused in it, and tells whether it
// does. It is asked only when the time has passed, which spares all others a look at the
// record: a pause in it gives more time than it took, but at most twice the limit.
func (p *patience) again() bool {
	now, changed := p.paused()
	switch {
	case now:
		p.since = time.Now()
	case changed.After(p.since):
		p.since = changed
	default:
		return false
	}
	return true
}
