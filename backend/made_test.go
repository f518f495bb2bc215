package backend

import (
	"errors"
	"fmt"
	"testing"

	"sandbox/api"
	"sandbox/core"
)

// What was made here is forgotten once it is gone, however it went, and nothing else is.
func TestForgetGone(t *testing.T) {
	t.Parallel()
	m := made{boxes: map[string]bool{}}
	lists := 0
	fail := errors.New("no answer")
	list := func() ([]api.Box, error) {
		lists++
		return []api.Box{{ID: "box_0"}, {ID: "box_1"}, {ID: "of another"}}, fail
	}
	for i := range core.MaxBoxes + 1 {
		if err := m.remember(fmt.Sprint("box_", i), true); err != nil {
			t.Fatal(err)
		}
		m.forgetGone(list)
	}
	if len(m.boxes) != core.MaxBoxes+1 || lists != 1 {
		t.Errorf("after %d lists that failed %d boxes are noted", lists, len(m.boxes))
	}
	fail = nil
	m.forgetGone(list)
	m.forgetGone(list)
	if len(m.boxes) != 2 || !m.boxes["box_0"] || !m.boxes["box_1"] || lists != 2 {
		t.Errorf("after %d lists %v are noted", lists, m.boxes)
	}
}
