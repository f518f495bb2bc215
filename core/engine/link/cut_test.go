package link_test

import (
	"flag"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"sandbox/core/engine/wire"
)

// seed chooses the places of cuts. Each run has others.
var seed = flag.Uint64("link.seed", uint64(time.Now().UnixNano()), "the places of cuts in lines")

// chances returns random numbers of a test, and prints how to have them again.
func chances(t testing.TB) *rand.Rand {
	t.Helper()
	t.Logf("go test -run '%s' -link.seed %d", t.Name(), *seed)
	return rand.New(rand.NewPCG(*seed, 0))
}

// within returns a function for proxy.cutAfter that cuts connections after up to n bytes.
func within(r *rand.Rand, n int) func() int { return func() int { return 1 + r.IntN(n) } }

// cutSizes are the most bytes that a line carries. A record of TLS that is cut is lost as
// a whole, so shorter lines have none.
var cutSizes = []int{1000, 5000, 40_000, 300_000}

func TestCutsOfOutput(t *testing.T) {
	t.Parallel()
	for _, n := range cutSizes {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			r := chances(t)
			size := max(40_000, 4*n)
			w := makeWorld(t, n < 20_000)
			w.proxy.cutAfter(within(r, n))
			h := w.host()
			for i := range 4 {
				c := start(t, h, write(size, i))
				out, errs := c.output()
				same(t, "stdout", out, noise(uint64(i), size))
				same(t, "stderr", errs, noise(uint64(i+1), size))
				c.exit()
				c.leave(wire.TypeRelease)
			}
			w.init.got(wire.TypeRelease, 4)
			t.Logf("%d cuts", w.proxy.cuts.Load())
		})
	}
}

func TestCutsOfInput(t *testing.T) {
	t.Parallel()
	for _, n := range cutSizes {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			r := chances(t)
			size := max(40_000, 4*n)
			w := makeWorld(t, n < 20_000)
			w.proxy.cutAfter(within(r, n))
			h := w.host()
			for i := range 4 {
				c := start(t, h, wire.Start{Cmd: []string{"cat"}, Stdin: true})
				want := noise(uint64(i), size)
				var wg sync.WaitGroup
				wg.Go(func() {
					pieces(c.in, want)
					_ = c.in.Close()
				})
				got, _ := io.ReadAll(c.out)
				wg.Wait()
				same(t, "echo", got, want)
				c.exit()
				c.leave(wire.TypeRelease)
			}
			w.init.got(wire.TypeRelease, 4)
			t.Logf("%d cuts", w.proxy.cuts.Load())
		})
	}
}
