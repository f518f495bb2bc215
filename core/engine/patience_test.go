package engine

import (
	"errors"
	"os"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/ids"
)

// TestPatience lets a child send nothing for longer than it may, with the box in
// different states.
func TestPatience(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Millisecond
	for name, tt := range map[string]struct {
		paused, resumed bool // resumed: some limits later, and the child sends nothing then
		silent          bool
	}{
		"a box that runs":          {silent: true},
		"a paused box":             {paused: true},
		"a box that is resumed":    {paused: true, resumed: true},
		"and whose child is stuck": {paused: true, resumed: true, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, id := t.TempDir(), ids.Box.New()
			c := &Client{home: home, records: record.Open(home)}
			put := func(state api.BoxStatus) {
				init, err := process.Of(os.Getpid())
				if err != nil {
					t.Error(err)
				}
				b := record.Box{Init: init}
				b.ID, b.Status, b.UpdatedAt = id, state, time.Now().UTC()
				if err := c.records.Put(id, b, false); err != nil {
					t.Error(err)
				}
			}
			put(map[bool]api.BoxStatus{false: api.Running, true: api.Paused}[tt.paused])
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			p := (&transfer{c: c, id: id}).patient(r)
			p.limit, p.since = limit, time.Now()
			read := make(chan error, 1)
			go func() {
				_, err := p.Read(make([]byte, 1))
				read <- err
			}()
			if tt.paused {
				select {
				case err := <-read:
					t.Fatal("while the box is paused: ", err)
				case <-time.After(5 * limit):
				}
			}
			if tt.resumed {
				put(api.Running)
			}
			if !tt.silent {
				if _, err := w.WriteString("x"); err != nil {
					t.Error(err)
				}
			}
			if err := <-read; errors.Is(err, os.ErrDeadlineExceeded) != tt.silent || !tt.silent && err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
