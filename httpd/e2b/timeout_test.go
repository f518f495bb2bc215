package e2b

import (
	"context"
	"sync"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/options"
)

// slow is an engine that takes its time to give a box a short time.
type slow struct {
	*fake.Engine
	asked chan struct{} // closed when it was asked for one
}

func (s slow) Update(ctx context.Context, id string, u options.Update) (core.Record, error) {
	if *u.TTLSeconds == 60 {
		close(s.asked)
		time.Sleep(20 * time.Millisecond)
	}
	return s.Engine.Update(ctx, id, u)
}

// Of two requests for more time at once, the longer one counts.
func TestExtend(t *testing.T) {
	t.Parallel()
	engine := slow{fake.NewEngine(t), make(chan struct{})}
	s := &Server{Config: Config{Runtime: core.New(core.Config{Engine: engine})}}
	o := options.Defaults()
	o.Image, o.RootfsPath, o.TTLSeconds = "", "/", 15
	box, _, err := s.Runtime.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	extend := func(seconds int) {
		if err := s.extend(t.Context(), box.ID(), seconds); err != nil {
			t.Error(err)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { extend(60) })
	<-engine.asked
	both.Go(func() { extend(3600) })
	both.Wait()
	rec, err := box.Record(t.Context())
	if err != nil || time.Until(*rec.ExpiresAt) < 50*time.Minute {
		t.Errorf("the box ends in %v, %v", time.Until(*rec.ExpiresAt), err)
	}
	extend(100)
	if rec, err = box.Record(t.Context()); err != nil || time.Until(*rec.ExpiresAt) < 50*time.Minute {
		t.Errorf("then it ends in %v, %v", time.Until(*rec.ExpiresAt), err)
	}
}
