package cli

import (
	"strings"
	"testing"
	"time"

	"sandbox/api"
)

func TestMeter(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	m := &meter{w: &out, layers: map[int]api.ImageProgress{}}
	for _, p := range []api.ImageProgress{
		{Layer: 2, Layers: 3, Stage: api.LayerFetching, Done: 512, Total: 1024},
		{Layer: 1, Layers: 3, Stage: api.LayerUnpacking, Done: 2048, Total: 1024},
		{Layer: 2, Layers: 3, Stage: api.LayerDone, Done: 1024, Total: 1024},
		{Layer: 3, Layers: 3, Stage: api.LayerFetching, Done: 7},
	} {
		out.Reset()
		m.last = time.Time{}
		m.show(p)
	}
	want := "\x1b[1A\r\x1b[J1 of 3 layers done\n  layer 1   unpack [========================] 2.0 KiB of 1.0 KiB\n  layer 3   fetch  7 B"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	m.clear()
	m.clear()
	if out.String() != "\x1b[2A\r\x1b[J" {
		t.Errorf("clear: %q", out.String())
	}
}
