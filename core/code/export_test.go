package code

import (
	"testing"

	"sandbox/core"
	"sandbox/test/boxes"
)

// AwaitWaiting waits until so many runs wait for a context.
func (c *Contexts) AwaitWaiting(t *testing.T, box *core.Box, id string, n int) {
	t.Helper()
	boxes.Await(t, "runs to wait", func() bool {
		c.turns.mu.Lock()
		defer c.turns.mu.Unlock()
		return len(c.turns.of[place(box, id)]) == n+1
	})
}
