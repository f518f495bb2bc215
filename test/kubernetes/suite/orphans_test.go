//go:build kubernetes

package suite

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// patience is the ScheduleTimeout of the engines here: what has not run after twice as
// long was abandoned.
const patience = 15 * time.Second

// makerOf is the variable that has a child process of TestOrphans make boxes in the
// namespace that it names.
const makerOf = "SANDBOX_TEST_MAKER_OF"

// TestMaker is no test: it makes boxes until it is killed.
func TestMaker(t *testing.T) {
	ns := os.Getenv(makerOf)
	if ns == "" {
		return // TestOrphans runs it
	}
	e := open(t, ns, withDisks, func(c *kubernetes.Config) { c.ScheduleTimeout, c.Reach = patience, kubernetes.ReachDirect })
	if _, err := e.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("ready\n")
	for {
		// Every other one has no disk.
		if _, err := createBox(t.Context(), e, func(o *options.Box) { o.Name, o.AutoRemove = ids.Box.New(), rand.IntN(2) == 0 }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOrphans kills programs that make boxes. Another program deletes what they left
// half made; what is left are whole boxes, which can be used and removed.
func TestOrphans(t *testing.T) {
	t.Parallel()
	const kills, together = 30, 5
	ns := namespace(t)
	e := open(t, ns, withDisks, func(c *kubernetes.Config) { c.ScheduleTimeout, c.Reach = patience, kubernetes.ReachDirect })
	if _, err := e.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	var makers sync.WaitGroup
	places := make(chan struct{}, together)
	for i := range kills {
		places <- struct{}{}
		makers.Go(func() {
			defer func() { <-places }()
			c := exec.Command(os.Args[0], "-test.run=^TestMaker$")
			c.Env = append(os.Environ(), makerOf+"="+ns)
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
			}
			after := time.Second // while it waits for the box
			if i%3 > 0 {
				after = 60 * time.Millisecond // while it sends its requests
			}
			time.Sleep(rand.N(after))
			_ = c.Process.Kill()
			_ = c.Wait()
		})
	}
	makers.Wait()
	began := time.Now()
	half := func() int {
		recs, err := e.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(slices.DeleteFunc(recs, func(r core.Record) bool { return r.Status != api.Created })); n > 0 {
			return n // some of them have a claim alone
		}
		pods := kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/slot", "--no-headers")
		return strings.Count(pods, "\n") - strings.Count(pods, " Running ") - strings.Count(pods, "No resources")
	}
	t.Logf("%d boxes or pods don't run when %d makers are dead", half(), kills)
	left := 0
	for range 120 {
		if left = half(); left == 0 {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if left > 0 {
		t.Errorf("%d boxes or pods are left that don't run", left)
	}
	recs, err := e.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d whole boxes are left after %v", len(recs), time.Since(began))
	for _, rec := range recs {
		if out, err := sh(t, e, rec.ID, "echo whole"); err != nil || out != "whole\n" {
			t.Errorf("box %s: %q, %v", rec.ID, out, err)
		}
		if err := e.Remove(t.Context(), rec.ID, true); err != nil {
			t.Error(err)
		}
	}
	empty(t, ns)
}
