package kubernetes

import (
	"context"

	"sandbox/core/fault"
)

// Changes calls changed once at the beginning, and then whenever boxes were created,
// removed or put into another state by any program, until ctx ends. removed is false if
// no box was removed since the previous call. Errors: those of the API server, until it
// has answered once.
func (e *Engine) Changes(ctx context.Context, changed func(removed bool)) error {
	if err := e.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	before, removed := map[string]bool{}, true // one may have gone before this began
	for ctx.Err() == nil {
		next := e.news.changes()
		recs, err := e.List(ctx)
		if err != nil && !fault.Is(err, fault.Canceled) {
			return err
		}
		now := make(map[string]bool, len(recs))
		for _, rec := range recs {
			now[rec.ID] = true
			delete(before, rec.ID)
		}
		changed(removed || len(before) > 0)
		before, removed = now, false
		select {
		case <-ctx.Done():
		case <-next:
		}
	}
	return nil
}
