package measures

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

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core"
	"sandbox/core/options"
)

const tracesBoxes = 50

// measureTraces makes and removes boxes with all kinds of resources that the
// host can give to a box, and counts what is left. One box keeps running
// meanwhile, which keeps the shim alive.
func measureTraces(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	l, err := b.Lab(ctx)
	if err != nil {
		return nil, err
	}
	return l.Ours.Alone("s", tracesBoxes, func(r *harness.Row) error {
		witness, err := l.Create(ctx, "127.0.0.1", l.NextPort())
		if err != nil {
			return err
		}
		return errors.Join(traces(ctx, l, r), l.Ours.Remove(ctx, witness))
	}), nil
}

func traces(ctx context.Context, l *contestants.Lab, r *harness.Row) error {
	before, err := count(l, nil, nil)
	if err != nil {
		return err
	}
	var ids []string
	ports := make([]int, tracesBoxes)
	boxes := make([]*core.Box, tracesBoxes)
	took, err := harness.AtOnce(tracesBoxes, harness.BoxesAtOnce, func(i int) (err error) {
		ports[i] = l.NextPort()
		boxes[i], err = l.Create(ctx, "127.0.0.1", ports[i], func(o *options.Box) { o.DiskSizeGB = 1 })
		if err != nil {
			return err
		}
		_, err = l.Ours.Exec(ctx, boxes[i], contestants.Hello...)
		return errors.Join(err, l.Ours.Remove(ctx, boxes[i]))
	})
	if err != nil {
		return err
	}
	r.P50, r.P99 = took.Seconds(), took.Seconds()
	for _, box := range boxes {
		ids = append(ids, box.ID())
	}
	start := time.Now()
	after, err := awaitGone(l, ids, ports, before)
	if err != nil {
		return err
	}
	if late := time.Since(start); late > teardownTime {
		r.Bars = append(r.Bars, harness.Verdict{Bar: "the kernel's own part is done within 10 s", Value: late.Seconds()})
	}
	for what, n := range after {
		r.Bars = append(r.Bars, harness.None("no "+what+" left", n-before[what]))
	}
	slices.SortFunc(r.Bars, func(a, b harness.Verdict) int { return strings.Compare(a.Bar, b.Bar) })
	return nil
}

// teardownTime is how long the kernel may take to remove, in the background, the
// interfaces and loop devices of boxes that have ended.
const teardownTime = 10 * time.Second

// awaitGone counts until nothing is left, or until teardownTime is over.
func awaitGone(l *contestants.Lab, ids []string, ports []int, before counts) (counts, error) {
	for deadline := time.Now().Add(teardownTime); ; time.Sleep(10 * time.Millisecond) {
		now, err := count(l, ids, ports)
		if err != nil || fmt.Sprint(now) == fmt.Sprint(before) || time.Now().After(deadline) {
			return now, err
		}
	}
}

// counts maps kinds of things to how many there are.
type counts map[string]int

// count counts the things that boxes consist of. ids and ports are those of
// boxes that have been removed.
func count(l *contestants.Lab, ids []string, ports []int) (counts, error) {
	c := counts{"loop device": loopDevices(l.Ours.Home)}
	err := l.Host.Do(func() (err error) {
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
	left, err := l.Ours.Leftovers(ids)
	if err != nil {
		return nil, err
	}
	c["directory, cgroup or mount"] = len(left)
	c["namespace"], err = l.Ours.Shim.Namespaces()
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

// takenPorts counts the ports that can't be listened on.
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

// loopDevices counts the loop devices of disks in a home.
func loopDevices(home string) (n int) {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file") // only a bad pattern fails
	for _, file := range files {
		if path, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(path), home) {
			n++
		}
	}
	return n
}
