package logs

import (
	"math"
	"sync"
	"time"
)

// Allowance is what a key has left of its queries.
type Allowance struct {
	Limit     int           // in a minute, and the most at once
	Remaining int           // now
	Reset     time.Duration // until there are Limit again
	Next      time.Duration // until there is one; 0 if there is
}

// meter counts the queries of each key: a token bucket a key, which a minute
// fills.
type meter struct {
	mu      sync.Mutex
	buckets map[string]*bucketOfKey
	sweep   time.Time // when full buckets were last removed
}

// bucketOfKey holds tokens, of which each query takes one.
type bucketOfKey struct {
	tokens float64
	at     time.Time // when they were counted
}

// take takes a token of a key; ok is false when there is none.
func (m *meter) take(key string, limit int, now time.Time) (a Allowance, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clean(now)
	b := m.buckets[key]
	if b == nil {
		b = &bucketOfKey{tokens: float64(limit), at: now}
		m.buckets[key] = b
	}
	each := float64(time.Minute) / float64(limit) // nanoseconds
	b.tokens = min(float64(limit), b.tokens+float64(now.Sub(b.at))/each)
	b.at = now
	if ok = b.tokens >= 1; ok {
		b.tokens--
	}
	until := func(tokens float64) time.Duration { return time.Duration(math.Ceil(max(0, tokens-b.tokens) * each)) }
	return Allowance{Limit: limit, Remaining: int(b.tokens), Reset: until(float64(limit)), Next: until(1)}, ok
}

// clean removes the buckets that are full again, so that keys of the past take no
// memory.
func (m *meter) clean(now time.Time) {
	if m.buckets == nil {
		m.buckets = map[string]*bucketOfKey{}
	}
	if now.Sub(m.sweep) < time.Minute {
		return
	}
	m.sweep = now
	for key, b := range m.buckets {
		if now.Sub(b.at) >= time.Minute {
			delete(m.buckets, key)
		}
	}
}
