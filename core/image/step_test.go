package image_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"sandbox/core"
)

// The records of steps are whole while other builds begin, which sweep what writers that
// have died left behind.
func TestStepsBesideSweeps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var building sync.WaitGroup
	for b := range 4 {
		building.Go(func() {
			for i := range 50 {
				free, err := f.Keep(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				_, err = f.Make(t.Context(), fmt.Sprintf("%064x", b<<8+i), func(layer string) (core.Image, error) {
					return core.Image{Layers: []string{filepath.Join(f.home, "layers", layer)}}, nil
				})
				free()
				if err != nil {
					t.Errorf("step %d of build %d: %v", i, b, err)
					return
				}
			}
		})
	}
	building.Wait()
}
