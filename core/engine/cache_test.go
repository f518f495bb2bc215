package engine

import (
	"testing"

	"sandbox/core/engine/record"
)

// A list that comes when the client is being closed opens no watch, which nobody
// would close.
func TestClosedCache(t *testing.T) {
	t.Parallel()
	c := cache{dir: record.Open(t.TempDir())}
	c.close()
	if _, err := c.all(); err != nil {
		t.Error(err)
	}
	if _, ok := c.get("box_aaaaaaaaaaaaaaaaaaaa"); ok || c.watch != nil {
		t.Errorf("found %v, watch %v, want neither", ok, c.watch)
	}
}
