package logs

import (
	"math"
	"sync"
	"time"
)

// Allowance is how many queries a key may still send.
type Allowance struct {
	Limit     int           // queries a minute, which is also the most at once
	Remaining int           // queries that may be sent now
	Reset     time.Duration // until Remaining is Limit again
	Next      time.Duration // until Remaining is at least one; 0 if it is now
}

// meter counts the queries of each key. Each key has a token bucket, which
// takes a minute to fill.
type meter struct {
	mu      sync.Mutex
	buckets map[string]*bucketOfKey
	sweep   time.Time // when full buckets were last removed
}

// bucketOfKey holds tokens. Each query takes one.
type bucketOfKey struct {
	tokens float64
	at     time.Time // when tokens was last brought up to date
}

// take takes a token of a key. ok is false when there is none.
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

// clean removes the buckets that are full again, so that keys no longer in use
// take no memory.
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
