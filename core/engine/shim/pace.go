package shim

import "time"

// What a box's init may tell of its main command: some states at once, and then one at a
// time. Each is written to the record. An init that has been replaced by a hostile one
// would keep the host busy otherwise; an honest one tells less.
const (
	statesAtOnce = 64
	stateTime    = 20 * time.Millisecond
)

// pace holds back a box that tells too much. The zero value is ready.
type pace struct{ due time.Time }

// delay returns how long to wait before one more state is taken at now. Meanwhile nothing
// is read, so that the box waits, too.
func (p *pace) delay(now time.Time) time.Duration {
	if p.due.Before(now) {
		p.due = now
	}
	p.due = p.due.Add(stateTime)
	return max(p.due.Sub(now)-statesAtOnce*stateTime, 0)
}
