package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/client"
	"sandbox/core/fault"
)

// figures are what a process has.
type figures struct{ descriptors, threads, goroutines, memory int }

// measured is the daemon and the shim while nothing is asked of them.
type measured struct{ daemon, shim figures }

// measure removes all boxes and looks at the daemon and the shim once they are at
// rest.
func (s *soak) measure() (m measured) {
	w := s.newWorker("measurer")
	all, err := s.clients[0].Boxes(s.ctx, client.Filter{})
	must(s.t, err)
	for _, box := range all {
		w.remove(box.ID)
	}
	s.sweep()
	for _, c := range s.clients {
		c.Close()
	}
	daemon, shim := s.daemon.cmd.Process.Pid, s.shimPID()
	stored := false                             // the rows that waited for the log engine
	for same := 0; same < 25 && s.pause(nil); { // half a second in which nothing changes
		now := measured{figuresOf(s.t, daemon), figuresOf(s.t, shim)}
		if same++; now.daemon.descriptors != m.daemon.descriptors || now.shim.descriptors != m.shim.descriptors {
			same = 0
		}
		m = now
		if same == 25 && !stored {
			s.awaitLogs()
			same, stored = 0, true
		}
	}
	m.daemon.goroutines = s.goroutines()
	return m
}

// spareMemory is how many MiB more a process may have at the end than before.
const spareMemory = 48

// awaitMemory waits until the daemon and the shim have no more memory than they may, for
// as long as Go may keep what nothing uses any more: it collects garbage every two minutes
// at the latest, and returns pages that were dense only behind the second time. A daemon
// that is asked collects sooner. What leaks stays.
func (s *soak) awaitMemory(before measured, after *measured) {
	daemon, shim, end := s.daemon.cmd.Process.Pid, s.shimPID(), time.Now().Add(5*time.Minute)
	for s.pause(nil) && time.Now().Before(end) {
		after.daemon.memory, after.shim.memory = figuresOf(s.t, daemon).memory, figuresOf(s.t, shim).memory
		if after.daemon.memory <= before.daemon.memory+spareMemory && after.shim.memory <= before.shim.memory+spareMemory {
			return
		}
		s.goroutines()
	}
}

// awaitLogs waits until the log engine answers: rows of execs wait for it, with
// their files. An engine that had died on a full disk is started again after a while;
// one that was never there is not waited for.
func (s *soak) awaitLogs() {
	for {
		_, err := s.clients[0].QueryLogs(s.ctx, "SELECT 1 FROM otel.otel_logs LIMIT 1", nil)
		if err == nil {
			return
		}
		switch missing := fault.Of(err).Prerequisite; {
		case missing != "":
			s.t.Fatalf("%v: %s", err, missing)
		case fault.Is(err, fault.SQLError):
			s.t.Fatal("the log engine refuses a statement that is right: ", err)
		case !s.pause(nil):
			s.t.Fatal("the log engine does not answer: ", err)
		}
	}
}

// figuresOf reads what a process has but for its goroutines, which it alone knows.
func figuresOf(t interface{ Fatal(...any) }, pid int) figures {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	number := func(name string) int {
		_, rest, _ := strings.Cut(string(text), name+":")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return figures{descriptors: descriptors(t, pid), threads: number("Threads"), memory: number("RssAnon") >> 10}
}

// orphans names what is left of boxes, by kind, once the shim has gone.
func (s *soak) orphans() map[string][]string {
	found := map[string][]string{}
	for _, line := range s.left() {
		kind, _, _ := strings.Cut(line, " ")
		found[kind] = append(found[kind], line)
	}
	found["link"], found["table"] = links(s), tables(s)
	for _, dir := range []string{"boxes", "records", "spool", "engine/state", "daemon/creates"} {
		entries, _ := os.ReadDir(filepath.Join(s.home, dir)) // none if it was never made
		for _, e := range entries {
			// Replies are kept for a day, and what was set aside for a person to look at.
			if dir == "daemon/creates" && !strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), ".damaged") {
				continue
			}
			found["file"] = append(found["file"], filepath.Join(dir, e.Name()))
		}
	}
	var st unix.Stat_t
	must(s.t, unix.Stat("/proc/thread-self/ns/net", &st))
	files, err := filepath.Glob(fmt.Sprintf("/run/sandbox-network-%d*", st.Ino))
	must(s.t, err)
	found["file"] = append(found["file"], files...)
	return found
}

// links names the network interfaces but the loopback.
func links(s *soak) (names []string) {
	all, err := netlink.LinkList()
	must(s.t, err)
	for _, l := range all {
		if name := l.Attrs().Name; name != "lo" {
			names = append(names, "link "+name)
		}
	}
	return names
}

// tables names the tables of nftables.
func tables(s *soak) (names []string) {
	c, err := nftables.New()
	must(s.t, err)
	all, err := c.ListTables()
	must(s.t, err)
	for _, t := range all {
		names = append(names, "table "+t.Name)
	}
	return names
}

// report prints what was done and found, and fails where something is over its
// bar.
func (s *soak) report(before, after measured) {
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	row := func(name string, found, bar int) {
		verdict := "ok"
		if found > bar {
			verdict = "OVER"
			s.t.Errorf("%s: %d, and %d may be", name, found, bar)
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\n", name, found, bar, verdict)
	}
	fmt.Fprintf(out, "what\tfound\tat most\t\n")
	row("lost bytes", int(s.lost.Load()), 0)
	row("wrong outputs and files", int(s.wrong.Load()), 0)
	row("duplicate boxes of a key", int(s.duplicates.Load()), 0)
	row("unexpected failures", int(s.unexpected.Load()), 0)
	orphans := s.orphans()
	for _, kind := range []string{"process", "mount", "cgroup", "loop", "descriptor", "link", "table", "file"} {
		row("orphans: "+kind, len(orphans[kind]), 0)
		for _, line := range orphans[kind] {
			s.t.Errorf("left behind: %s\nthe shim's log:\n%s", line, tail(s.shimLog(), filepath.Base(line)))
		}
	}
	for _, p := range []struct {
		name          string
		before, after figures
	}{{"daemon", before.daemon, after.daemon}, {"shim", before.shim, after.shim}} {
		row(p.name+"'s descriptors", p.after.descriptors, p.before.descriptors+16)
		row(p.name+"'s threads", p.after.threads, p.before.threads+16)
		row(p.name+"'s memory, MiB", p.after.memory, p.before.memory+spareMemory)
	}
	row("daemon's goroutines", after.daemon.goroutines, before.daemon.goroutines+32)
	_ = out.Flush()
	s.sum()
}

// sum prints what was tried.
func (s *soak) sum() {
	fmt.Printf("%d boxes, %d execs, %d MiB compared, %d readers cut, %d calls; %d bytes dropped on a full disk, and told by a gap\n",
		s.boxes.Load(), s.execs.Load(), s.bytes.Load()>>20, s.cuts.Load(), s.answered.Load(), s.dropped.Load())
	times := map[way]int{}
	var lasted time.Duration
	for _, d := range s.all {
		times[d.way]++
		lasted += d.to.Sub(d.from)
	}
	fmt.Printf("disturbed %v for %v\n", times, lasted.Round(time.Millisecond))
	var lines []string
	for what, n := range s.refused {
		lines = append(lines, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(lines)
	fmt.Println("refused, as it may be:", strings.Join(lines, ", "))
}
