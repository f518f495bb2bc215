package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"sandbox/core"
	"sandbox/core/options"
)

const tracesBoxes = 50

// measureTraces makes and removes boxes with all that the host gives to one,
// and counts what is left. One box stays alive beside them, and with it the
// shim.
func measureTraces(ctx context.Context, b *bench) ([]row, error) {
	l, err := b.theLab(ctx)
	if err != nil {
		return nil, err
	}
	return l.ours.alone("s", tracesBoxes, func(r *row) error {
		witness, err := l.create(ctx, "127.0.0.1", l.nextPort())
		if err != nil {
			return err
		}
		return errors.Join(l.traces(ctx, r), l.ours.remove(ctx, witness))
	}), nil
}

func (l *lab) traces(ctx context.Context, r *row) error {
	before, err := l.count(nil, nil)
	if err != nil {
		return err
	}
	var ids []string
	ports := make([]int, tracesBoxes)
	boxes := make([]*core.Box, tracesBoxes)
	took, err := batch(tracesBoxes, func(i int) (err error) {
		ports[i] = l.nextPort()
		boxes[i], err = l.create(ctx, "127.0.0.1", ports[i], func(o *options.Box) { o.DiskSizeGB = 1 })
		if err != nil {
			return err
		}
		_, err = l.ours.exec(ctx, boxes[i], hello...)
		return errors.Join(err, l.ours.remove(ctx, boxes[i]))
	})
	if err != nil {
		return err
	}
	r.P50, r.P99 = took.Seconds(), took.Seconds()
	for _, box := range boxes {
		ids = append(ids, box.ID())
	}
	start := time.Now()
	after, err := l.awaitGone(ids, ports, before)
	if err != nil {
		return err
	}
	if late := time.Since(start); late > teardownTime {
		r.Bars = append(r.Bars, verdict{"the kernel's own part is done within 10 s", late.Seconds(), false})
	}
	for what, n := range after {
		r.Bars = append(r.Bars, verdict{"no " + what + " left", float64(n - before[what]), n == before[what]})
	}
	slices.SortFunc(r.Bars, func(a, b verdict) int { return strings.Compare(a.Bar, b.Bar) })
	return nil
}

// teardownTime is what the kernel may take to remove, in the background, the
// interfaces and loop devices of what has ended.
const teardownTime = 10 * time.Second

// awaitGone counts until nothing is left, or the kernel has had its time.
func (l *lab) awaitGone(ids []string, ports []int, before counts) (counts, error) {
	for deadline := time.Now().Add(teardownTime); ; time.Sleep(10 * time.Millisecond) {
		now, err := l.count(ids, ports)
		if err != nil || fmt.Sprint(now) == fmt.Sprint(before) || time.Now().After(deadline) {
			return now, err
		}
	}
}

// counts is how many things of a kind there are.
type counts map[string]int

// count counts what boxes are made of. ids and ports are of boxes that have
// been removed.
func (l *lab) count(ids []string, ports []int) (counts, error) {
	c := counts{"loop device": loopDevices(l.ours.home)}
	err := l.host.do(func() (err error) {
		if c["link"], err = links(); err != nil {
			return err
		}
		if c["rule"], err = tableEntries(); err != nil {
			return err
		}
		c["port"] = takenPorts(ports)
		return nil
	})
	if err != nil {
		return nil, err
	}
	left, err := l.ours.leftovers(ids)
	if err != nil {
		return nil, err
	}
	c["directory, cgroup or mount"] = len(left)
	c["namespace"], err = l.ours.shim.namespaces()
	return c, err
}

// links counts the interfaces of boxes.
func links() (n int, err error) {
	all, err := netlink.LinkList()
	for _, link := range all {
		if strings.HasPrefix(link.Attrs().Name, "sbx") {
			n++
		}
	}
	return n, err
}

// tableEntries counts rules and elements of maps and sets.
func tableEntries() (n int, err error) {
	c, err := nftables.New()
	if err != nil {
		return 0, err
	}
	chains, err := c.ListChains()
	if err != nil {
		return 0, err
	}
	for _, chain := range chains {
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return 0, err
		}
		n += len(rules)
	}
	tables, err := c.ListTables()
	if err != nil {
		return 0, err
	}
	for _, table := range tables {
		sets, err := c.GetSets(table)
		if err != nil {
			return 0, err
		}
		for _, set := range sets {
			elements, err := c.GetSetElements(set)
			if err != nil {
				return 0, err
			}
			n += len(elements)
		}
	}
	return n, nil
}

// takenPorts counts those that can't be listened on.
func takenPorts(ports []int) (n int) {
	for _, port := range ports {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			n++
			continue
		}
		_ = l.Close()
	}
	return n
}

// loopDevices counts those of disks in a home.
func loopDevices(home string) (n int) {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file") // only a bad pattern fails
	for _, file := range files {
		if path, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(path), home) {
			n++
		}
	}
	return n
}

// namespaces counts those that the shim and all it has started hold: by being
// in one, by a descriptor or by a mount.
func (h shim) namespaces() (int, error) {
	family, err := h.family()
	if err != nil {
		return 0, err
	}
	held := map[string]bool{}
	for _, pid := range family {
		for _, pattern := range []string{"ns/*", "task/*/ns/*", "fd/*"} {
			names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/%s", pid, pattern)) // only a bad pattern fails
			for _, name := range names {
				if target, err := os.Readlink(name); err == nil && strings.Contains(target, ":[") && !strings.HasPrefix(target, "socket:") && !strings.HasPrefix(target, "pipe:") && !strings.HasPrefix(target, "anon_inode:") {
					held[target] = true
				}
			}
		}
		mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid)) // it may have ended
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, " - nsfs ") {
				held[line] = true
			}
		}
	}
	return len(held), nil
}
