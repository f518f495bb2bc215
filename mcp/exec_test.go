package mcp

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/options"
)

type place = backend.Boxes // under a name that none of its methods has

// unreadable are boxes whose commands start and can't be read, as where descriptors run
// out between the two. did is what becomes of the command.
type unreadable struct {
	place
	did *[]string
}

func (u unreadable) Run(context.Context, string, options.Exec) (backend.Command, error) {
	return unreadCommand{did: u.did}, nil
}

type unreadCommand struct {
	backend.Command
	did *[]string
}

func (unreadCommand) Input() io.WriteCloser { return nil }

func (unreadCommand) Reader(context.Context) (backend.Reader, error) {
	return nil, fault.New(fault.ResourceExhausted, "no descriptor is left")
}

func (c unreadCommand) Cancel(context.Context, time.Duration) error {
	*c.did = append(*c.did, "cancel")
	return nil
}

func (c unreadCommand) Close() error {
	*c.did = append(*c.did, "close")
	return nil
}

// TestUnreadCommandEnds checks that a command whose output can't be read is ended: a
// close would leave it running.
func TestUnreadCommandEnds(t *testing.T) {
	t.Parallel()
	var did []string
	s := &session{Server: &Server{Config: Config{Boxes: unreadable{did: &did}}}}
	if _, err := s.exec(t.Context(), "box", options.Exec{}, ""); !fault.Is(err, fault.ResourceExhausted) {
		t.Errorf("exec returns %v, want resource_exhausted", err)
	}
	if !slices.Equal(did, []string{"cancel", "close"}) {
		t.Errorf("the command got %v, want a cancel and a close", did)
	}
}
