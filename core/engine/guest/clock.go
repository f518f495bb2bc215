package guest

import (
	"sync"
	"time"
)

// clocks are the timers of a box's execs. All of them stand still while the box is
// paused: a command that stands still must not run out of time.
type clocks struct {
	mu    sync.Mutex
	still bool
	set   map[*clock]bool // that have not gone off
}

// clock is one timer.
type clock struct {
	of   *clocks
	do   func()
	left time.Duration // when it began to run, or while it stands still
	at   time.Time     // when it began to run
	run  *time.Timer   // nil while it stands still
}

// after calls do after d, in which the time that the box is paused does not count.
func (c *clocks) after(d time.Duration, do func()) *clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &clock{of: c, do: do, left: d}
	if c.set == nil {
		c.set = map[*clock]bool{}
	}
	c.set[t] = true
	if !c.still {
		t.start()
	}
	return t
}

// start lets a clock run. c.mu is held.
func (t *clock) start() {
	t.at = time.Now()
	t.run = time.AfterFunc(t.left, t.goOff)
}

func (t *clock) goOff() {
	t.of.mu.Lock()
	due := t.of.set[t] && !t.of.still // a pause that was faster has noted that nothing is left
	if due {
		delete(t.of.set, t)
	}
	t.of.mu.Unlock()
	if due {
		t.do()
	}
}

// stop ends a clock. A nil clock has ended already.
func (t *clock) stop() {
	if t == nil {
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	delete(t.of.set, t)
	if t.run != nil {
		t.run.Stop()
	}
}

// pause has all clocks stand still, those too that are set later.
func (c *clocks) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.still {
		return
	}
	c.still = true
	for t := range c.set {
		t.run.Stop()
		t.left, t.run = max(0, t.left-time.Since(t.at)), nil
	}
}

// resume lets all clocks go on.
func (c *clocks) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.still {
		return
	}
	c.still = false
	for t := range c.set {
		t.start()
	}
}
