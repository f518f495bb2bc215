package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core/image"
)

// meter shows the progress of an image's layers on a terminal, a bar for each. If
// its writer is no terminal, it shows nothing.
type meter struct {
	w      io.Writer // nil: show nothing
	last   time.Time
	lines  int // on the terminal now
	layers map[int]api.ImageProgress
	done   int
}

const (
	perFrame = 100 * time.Millisecond
	barWidth = 24
)

func newMeter(w io.Writer) *meter {
	m := &meter{layers: map[int]api.ImageProgress{}}
	if asTerminal(w) != nil {
		m.w = w
	}
	return m
}

// watch returns a context; layers that are pulled with it are shown.
func (m *meter) watch(ctx context.Context) context.Context {
	return image.WithProgress(ctx, m.show)
}

// show notes the progress of a layer. It draws at most as often as one can see.
func (m *meter) show(p api.ImageProgress) {
	if m.w == nil {
		return
	}
	if p.Stage == api.LayerDone {
		delete(m.layers, p.Layer)
		m.done++
	} else {
		m.layers[p.Layer] = p
	}
	if time.Since(m.last) < perFrame {
		return
	}
	m.last = time.Now()
	frame := []string{fmt.Sprintf("%d of %d layers done", m.done, p.Layers)}
	for _, layer := range slices.Sorted(maps.Keys(m.layers)) {
		frame = append(frame, bar(m.layers[layer]))
	}
	m.erase()
	fmt.Fprint(m.w, strings.Join(frame, "\n"))
	m.lines = len(frame)
}

// bar returns the line of one layer.
func bar(p api.ImageProgress) string {
	line := fmt.Sprintf("  layer %-3d %-6s ", p.Layer, printable(string(p.Stage)))
	if p.Total <= 0 {
		return line + size(p.Done)
	}
	full := int(barWidth * min(p.Done, p.Total) / p.Total)
	return fmt.Sprintf("%s[%s%s] %s of %s", line, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), size(p.Done), size(p.Total))
}

// erase removes what was drawn last.
func (m *meter) erase() {
	if m.lines > 1 {
		fmt.Fprintf(m.w, "\x1b[%dA", m.lines-1)
	}
	if m.lines > 0 {
		fmt.Fprint(m.w, "\r\x1b[J")
	}
	m.lines = 0
}

// clear removes all bars, at the end.
func (m *meter) clear() {
	if m.w != nil {
		m.erase()
	}
}
