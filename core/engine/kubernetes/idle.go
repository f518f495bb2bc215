package kubernetes

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// looks says when the boxes that may not be unused for ever are looked at next. Their
// inits know since when nobody uses them, and are asked no more often than that can
// matter. The zero value is ready.
type looks struct {
	mu sync.Mutex
	at map[string]look // by the id of the box
}

type look struct {
	after time.Duration // the box's idle_seconds
	next  time.Time     // zero while init is being asked
}

// due returns in how long a box is to be looked at; 0 for at once, which counts as begun.
func (l *looks) due(id string, after time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, known := l.at[id]
	switch {
	case !known || now.after != after:
		l.set(id, look{after, time.Now().Add(after)})
		return after
	case now.next.IsZero():
		return forever
	case time.Now().Before(now.next):
		return time.Until(now.next)
	}
	l.set(id, look{after: after})
	return 0
}

// set notes a look. l.mu is held.
func (l *looks) set(id string, next look) {
	if l.at == nil {
		l.at = map[string]look{}
	}
	l.at[id] = next
}

// again has a box looked at after a time.
func (l *looks) again(id string, after, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(id, look{after, time.Now().Add(left)})
}

// only forgets all boxes but those that is says true for.
func (l *looks) only(is map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.at {
		if !is[id] {
			delete(l.at, id)
		}
	}
}

// tendIdle looks at the boxes that may not be unused for ever, and returns in how long
// the next one is to be looked at.
func (e *Engine) tendIdle(ctx context.Context, pods []*corev1.Pod) (next time.Duration) {
	next = forever
	watched := map[string]bool{}
	for _, pod := range pods {
		rec := recordOf(pod)
		after := time.Duration(rec.Options.IdleSeconds) * time.Second
		if after == 0 || rec.Status != api.Running {
			continue
		}
		watched[rec.ID] = true
		left := e.looks.due(rec.ID, after)
		if left > 0 {
			next = min(next, left)
			continue
		}
		e.work.Go(func() {
			left, err := e.endUnused(ctx, rec.ID)
			if err != nil {
				left = patience
			}
			e.looks.again(rec.ID, after, left)
			e.news.tell()
		})
	}
	e.looks.only(watched)
	return next
}

// endUnused ends a box that nobody has used for its idle_seconds. Otherwise it returns in
// how long that may be so.
func (e *Engine) endUnused(ctx context.Context, id string) (left time.Duration, err error) {
	end, err := e.turns.take(ctx, id)
	if err != nil {
		return 0, err
	}
	defer end()
	rec, pod, err := e.find(ctx, id)
	after := time.Duration(rec.Options.IdleSeconds) * time.Second
	if err != nil || rec.Status != api.Running || after == 0 {
		return forever, err
	}
	left, err = e.askIdle(ctx, pod, rec, after)
	if err != nil || left > 0 {
		return left, err
	}
	return forever, e.finish(ctx, pod, asked(rec, pod), reasonIdle)
}

// askIdle asks init how long the box must still be without use until it has been so for
// as long as after. If it has, init starts nothing for the next moments.
func (e *Engine) askIdle(ctx context.Context, pod *corev1.Pod, rec core.Record, after time.Duration) (left time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := e.reach(ctx, pod, rec, true)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var is wire.IdleIs
	if err := conn.Ask(ctx, wire.TypeIdle, wire.Idle{AtLeastMS: after.Milliseconds()}, &is); err != nil {
		return 0, fault.Wrap(fault.Engine, err, "ask box %s since when nobody uses it", rec.ID)
	}
	if is.InUse {
		return after, nil
	}
	return after - time.Duration(max(is.MS, 0))*time.Millisecond, nil
}
