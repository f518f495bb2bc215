package harness

import (
	"errors"
	"sync"
	"time"
)

// BoxesAtOnce is how many boxes are made at the same time, in the measurements
// that make many.
const BoxesAtOnce = 8

// AtOnce calls one for 0 to n-1, some calls at a time.
func AtOnce(n, some int, one func(i int) error) (time.Duration, error) {
	errs := make([]error, n)
	work := make(chan int)
	var wg sync.WaitGroup
	start := time.Now()
	for range some {
		wg.Go(func() {
			for i := range work {
				errs[i] = one(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}
