package main

import (
	"sync"
	"testing"

	"sandbox/core/fault"
)

type parent struct{}
type child struct{}

func newHandle(t *testing.T, value any, owner handle) handle {
	t.Helper()
	h, err := put(value, owner)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func refused[T any](t *testing.T, h handle) {
	t.Helper()
	if _, err := get[T](h, "it"); !fault.Is(err, fault.InvalidArgument) {
		t.Errorf("handle %#x: got %v, want invalid_argument", h, err)
	}
}

func TestHandleIsOfOneType(t *testing.T) {
	t.Parallel()
	h := newHandle(t, &parent{}, 0)
	refused[*child](t, h)
	if _, ok := take[*child](h); ok {
		t.Error("released as another type")
	}
	if _, err := get[*parent](h, "it"); err != nil {
		t.Error(err)
	}
	take[*parent](h)
}

func TestReleasedHandleIsRefused(t *testing.T) {
	t.Parallel()
	h := newHandle(t, &parent{}, 0)
	if _, ok := take[*parent](h); !ok {
		t.Fatal("not released")
	}
	refused[*parent](t, h)
	for range 100 { // one of them would get the address if it had been freed
		defer take[*parent](newHandle(t, &parent{}, 0))
	}
	if _, ok := take[*parent](h); ok {
		t.Error("released twice")
	}
}

func TestOwnerTakesItsHandlesWithIt(t *testing.T) {
	t.Parallel()
	owner := newHandle(t, &parent{}, 0)
	early, late := newHandle(t, &child{}, owner), newHandle(t, &child{}, owner)
	take[*child](early)
	take[*parent](owner)
	refused[*child](t, late)
	if _, err := put(&child{}, owner); !fault.Is(err, fault.InvalidArgument) {
		t.Errorf("a released owner got a handle: %v", err)
	}
}

func TestWhatIsNoHandleIsRefused(t *testing.T) {
	t.Parallel()
	for _, h := range []handle{0, 1, 4095, 4096, 1 << 40} {
		refused[*parent](t, h)
		if _, ok := take[*parent](h); ok {
			t.Errorf("released %#x", h)
		}
	}
}

// The address of a released handle is not reused before as many other handles
// as tombstones says were released. After that it is freed.
func TestTombstonesAreBounded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	addresses := map[handle]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range tombstones / 2 {
				h, _ := put(&child{}, 0)
				mu.Lock()
				addresses[h] = true
				mu.Unlock()
				take[*child](h)
			}
		})
	}
	wg.Wait()
	if n := len(addresses); n < tombstones || n > tombstones+tombstones/4 {
		t.Errorf("%d handles had %d addresses, want about %d", 2*tombstones, n, tombstones)
	}
}
