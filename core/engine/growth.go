package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandbox/core/engine/record"
	"sandbox/core/image/layer"
)

// Growth is what one box takes up on the home's disk.
type Growth struct {
	layer.Use
	Box string // its name, or its id without one
}

// String returns the box and its size, for a message.
func (g Growth) String() string {
	least := ""
	if g.AtLeast {
		least = "at least "
	}
	return fmt.Sprintf("%s %s%d MiB", g.Box, least, g.Bytes>>20)
}

// mostFiles is how many files of one box are counted. More would take seconds.
const mostFiles = 1 << 17

// Largest returns up to n boxes, those that take up most of the home's disk
// first. It looks at each file that the boxes have written, so it is for rare
// occasions. Errors: Storage, and the end of ctx.
func (c Config) Largest(ctx context.Context, n int) ([]Growth, error) {
	boxes, _, err := record.Open(c.Home).List()
	if err != nil {
		return nil, err
	}
	var all []Growth
	for _, b := range boxes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all = append(all, Growth{layer.DiskUse(record.Dir(c.Home, b.ID), mostFiles), cmp.Or(b.Options.Name, b.ID)})
	}
	slices.SortFunc(all, func(a, b Growth) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(n, len(all))], nil
}

// spaceEvery is how often WatchSpace asks for the free space.
const spaceEvery = 10 * time.Second

// named is how many boxes are named when the space is low.
const named = 5

// WatchSpace calls low whenever the home's disk has become low on space (see
// [Space.Low]), with the space and a text that names the largest boxes, until
// ctx ends. It calls again only after half as much again was free meanwhile:
// what is free may go up and down around the bound.
func (c *Client) WatchSpace(ctx context.Context, low func(freeMiB uint64, largest string, err error)) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for was := (watermark{}); ; {
		if s, err := c.config.Space(); err == nil && was.crossed(s) { // a failure is that of the next create, too
			boxes, err := c.config.Largest(ctx, named)
			low(s.Free>>20, Names(boxes), err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Names returns the boxes with their sizes, for a message.
func Names(boxes []Growth) string {
	texts := make([]string, len(boxes))
	for i, g := range boxes {
		texts[i] = g.String()
	}
	return strings.Join(texts, ", ")
}

// watermark remembers whether the space was found low.
type watermark struct{ low bool }

// crossed tells whether the space has become low since it was last well above.
func (w *watermark) crossed(s Space) bool {
	crossed := s.Low() && !w.low
	w.low = s.Low() || w.low && s.Free < 3*s.Floor
	return crossed
}
