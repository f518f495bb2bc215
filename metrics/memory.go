package metrics

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// What is kept in memory.
const (
	kept       = time.Hour
	maxSamples = 1 << 19 // of all boxes together, some 50 MB; the oldest go first
)

// memory keeps the samples of the last hour.
type memory struct {
	mu     sync.Mutex
	passes []pass // oldest first
	count  int    // of samples
}

// pass holds what was measured at one time, in the order of the boxes' ids.
type pass []Sample

func (m *memory) add(_ context.Context, samples []Sample) {
	if len(samples) == 0 {
		return
	}
	now := pass(slices.Clone(samples))
	slices.SortFunc(now, func(a, b Sample) int { return cmp.Compare(a.Box, b.Box) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes = append(m.passes, now)
	m.count += len(now)
	m.drop(now[0].At - kept.Milliseconds())
}

// drop drops what was measured before a time, and what is too much. m.mu is held.
func (m *memory) drop(before int64) {
	n := 0
	for n < len(m.passes)-1 && (m.passes[n][0].At < before || m.count > maxSamples) {
		m.count -= len(m.passes[n])
		n++
	}
	m.passes = slices.Delete(m.passes, 0, n)
}

func (m *memory) read(_ context.Context, s span) ([]Sample, error) {
	m.mu.Lock()
	passes := slices.Clone(m.passes) // a pass is never changed
	m.mu.Unlock()
	var found []Sample
	for _, p := range passes {
		if one, ok := p.of(s.box); ok && one.At >= s.from && one.At < s.to {
			found = append(found, one)
		}
	}
	return fold(found, s.step), nil
}

// of returns the sample of a box, and whether there is one.
func (p pass) of(box string) (Sample, bool) {
	i, ok := slices.BinarySearchFunc(p, box, func(s Sample, box string) int { return cmp.Compare(s.Box, box) })
	if !ok {
		return Sample{}, false
	}
	return p[i], true
}
