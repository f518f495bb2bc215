package boxlog

import (
	"log/slog"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/logs/ingest"
)

// What becomes of boxes is stored also while output fills all places.
func TestEventsBesideAFlood(t *testing.T) {
	t.Parallel()
	r := &Recorder{Config: Config{Log: slog.New(slog.DiscardHandler)}, chunks: make(chan []ingest.Row, 1)}
	r.Boxes(nil)
	r.chunks <- []ingest.Row{{Body: "output"}}
	r.Boxes([]core.Record{{ID: "box_a", Status: api.Running}})
	r.Boxes([]core.Record{{ID: "box_a", Status: api.Stopped}})
	var got []string
	for _, row := range append(<-r.chunks, r.takeEvents()...) {
		got = append(got, row.Body)
	}
	if want := []string{"output", "box running", "box stopped"}; len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("stored %q, want %q", got, want)
	}
}
