package inits

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
)

// oneBox is a box that nobody reaches, in one state after the other.
type oneBox struct{ record atomic.Pointer[core.Record] }

func (b *oneBox) put(state api.BoxStatus) {
	b.record.Store(&core.Record{Status: state, UpdatedAt: time.Now().UTC()})
}

func (b *oneBox) Get(context.Context, string) (core.Record, error) { return *b.record.Load(), nil }

func (*oneBox) Dial(context.Context, string, bool) (*wire.Conn, error) { return nil, unix.ECONNREFUSED }

func (*oneBox) Explain(_ string, err error) error { return err }

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
			boxes := &oneBox{}
			boxes.put(map[bool]api.BoxStatus{false: api.Running, true: api.Paused}[tt.paused])
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			p := (&transfer{ctx: t.Context(), c: New(boxes, false), id: "box"}).patient(r)
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
				boxes.put(api.Running)
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
