package logs

import (
	"sync"
	"time"
)

// Allowance is what a key has left of its queries.
type Allowance struct {
	Limit     int           // in a minute
	Remaining int           // of them
	Reset     time.Duration // until there are Limit again
}

// minute is the span that queries of a key are counted in.
const minute = time.Minute

// meter counts the queries of each key in spans of a minute, which begin with
// a key's first one.
type meter struct {
	mu    sync.Mutex
	spans map[string]*span
	sweep time.Time // when spans that are over were last removed
}

type span struct {
	until time.Time
	count int
}

// take counts a query of a key; ok is false when it is one too many.
func (m *meter) take(key string, limit int, now time.Time) (a Allowance, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clean(now)
	s := m.spans[key]
	if s == nil || !now.Before(s.until) {
		s = &span{until: now.Add(minute)}
		m.spans[key] = s
	}
	if ok = s.count < limit; ok {
		s.count++
	}
	return Allowance{Limit: limit, Remaining: limit - s.count, Reset: s.until.Sub(now)}, ok
}

// clean removes spans that are over, so that keys of the past take no memory.
func (m *meter) clean(now time.Time) {
	if m.spans == nil {
		m.spans = map[string]*span{}
	}
	if now.Sub(m.sweep) < minute {
		return
	}
	m.sweep = now
	for key, s := range m.spans {
		if !now.Before(s.until) {
			delete(m.spans, key)
		}
	}
}
