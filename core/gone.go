package core

import (
	"maps"
	"sync"
)

// ForgetGone removes the boxes that are gone from those that are noted by their ids, which
// mu guards: nobody tells of boxes that end by themselves, as at the end of their time.
// list returns the ids of all boxes that there are; what is noted meanwhile stays. Errors:
// those of list.
func ForgetGone[V any](mu sync.Locker, noted map[string]V, list func() (ids []string, err error)) error {
	mu.Lock()
	gone := maps.Clone(noted)
	mu.Unlock()
	there, err := list()
	if err != nil {
		return err
	}
	for _, id := range there {
		delete(gone, id)
	}
	mu.Lock()
	defer mu.Unlock()
	for id := range gone {
		delete(noted, id)
	}
	return nil
}
