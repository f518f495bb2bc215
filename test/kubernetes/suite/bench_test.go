//go:build kubernetes

package suite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// These benchmarks measure what a box of a cluster costs beside a peer in the same run:
// `make bench-kubernetes`. The peers take turns with what they are compared with, so that
// both meet the same load.

// images resolves nothing: the cluster pulls what a box names.
type images struct{ core.Images }

func (images) Resolve(_ context.Context, ref string) (core.Image, error) {
	return core.Image{Ref: ref}, nil
}

// create makes a box. The caller removes it.
func create(b *testing.B, e core.Engine, change ...func(*options.Box)) *core.Box {
	b.Helper()
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.AutoRemove = "localhost/busybox:1", 1, 128, false
	for _, do := range change {
		do(&o)
	}
	box, _, err := core.New(core.Config{Engine: e, Images: images{}}).Create(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	return box
}

func remove(b *testing.B, box *core.Box) {
	b.Helper()
	if err := box.Remove(context.Background(), true); err != nil {
		b.Error(err)
	}
}

func hello(b *testing.B, box *core.Box) {
	b.Helper()
	if r, err := box.Run(b.Context(), "echo", "hello"); err != nil || r.Stdout != "hello\n" {
		b.Fatalf("%+v, %v", r, err)
	}
}

// times are how long the rounds of one contestant took.
type times []time.Duration

func (t *times) take(do func()) {
	begun := time.Now()
	do()
	*t = append(*t, time.Since(begun))
}

func (t times) percentile(p int) time.Duration {
	slices.Sort(t)
	return t[min(len(t)*p/100, len(t)-1)]
}

func (t times) report(b *testing.B, name string) {
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(t.percentile(p))/1e6, fmt.Sprintf("%s-p%d-ms", name, p))
	}
}

// compare reports two contestants, and the ratio of their medians.
func compare(b *testing.B, own times, name string, peer times) {
	own.report(b, "box")
	peer.report(b, name)
	b.ReportMetric(float64(own.percentile(50))/float64(peer.percentile(50)), "ratio")
	b.ReportMetric(0, "ns/op") // the mean of both says nothing
}

// rest returns a client of a server of its own on a namespace, over TCP and with a key.
func rest(b *testing.B, ns string, flags ...string) *client.Client {
	b.Helper()
	s := serve(b, ns, newHome(b), append(flags, "--listen", "127.0.0.1:0")...)
	k, err := s.CreateKey(b.Context(), client.NewKey{Name: "bench", Permissions: []string{api.MayUseBoxes}})
	if err != nil {
		b.Fatal(err)
	}
	return holder(b, s, k.Secret)
}

// answered starts a command in a box over REST and waits for its first output.
func answered(b *testing.B, c *client.Client, box string) {
	b.Helper()
	e, err := c.StartExec(b.Context(), box, options.Exec{Cmd: []string{"echo", "hello"}})
	if err != nil {
		b.Fatal(err)
	}
	var out told
	if err := out.read(b.Context(), c, box, e.ID, 0, func() bool { return out.text.Len() > 0 }); err != nil || out.text.String() != "hello\n" {
		b.Fatalf("%q, %v", out.text.String(), err)
	}
}

// claims measures creates that a pod is there for, over REST.
type claims struct {
	ns, kept string // kept selects the pods that are there
	client   *client.Client
	took     times
}

// round makes a box and removes it, and waits until the pods are there again.
func (c *claims) round(b *testing.B) {
	b.Helper()
	const pool = 2 // what a server keeps if nothing else is set
	var box api.Box
	c.took.take(func() {
		var err error
		if box, err = c.client.CreateBox(b.Context(), plain()); err != nil {
			b.Fatal(err)
		}
		answered(b, c.client, box.ID)
	})
	if _, err := c.client.RemoveBox(b.Context(), box.ID, true); err != nil {
		b.Error(err)
	}
	filled(b, c.ns, c.kept, pool)
}

// BenchmarkClaim measures over REST from a create that a spare pod is there for to the
// first output of a command.
func BenchmarkClaim(b *testing.B) {
	ns := namespace(b)
	own := claims{ns: ns, kept: "sandbox/spare", client: rest(b, ns)}
	own.round(b) // from here on the server keeps spares
	own.took = nil
	for b.Loop() {
		own.round(b)
	}
	own.took.report(b, "claim")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAgentSandbox measures the same with pods that agent-sandbox keeps, and beside it
// with our own.
func BenchmarkAgentSandbox(b *testing.B) {
	theirs, ours := namespace(b), namespace(b)
	both := []*claims{
		{ns: theirs, kept: waiting, client: rest(b, theirs)},
		{ns: ours, kept: "sandbox/spare", client: rest(b, ours, "--agent-sandbox", "off")},
	}
	for _, c := range both {
		c.round(b)
		c.took = nil
	}
	for b.Loop() {
		for _, c := range both {
			c.round(b)
		}
	}
	compare(b, both[0].took, "own", both[1].took)
}

// filled waits until so many pods that are kept ready run.
func filled(b *testing.B, ns, kept string, n int) {
	b.Helper()
	for {
		out := kubectl(b, "get", "pods", "--namespace", ns, "--selector", kept, "--output", "jsonpath={.items[*].status.containerStatuses[0].state.running.startedAt}")
		if len(strings.Fields(out)) >= n {
			return
		}
	}
}

// BenchmarkCold measures from a create to the end of a first command, and beside it a
// bare pod from `kubectl create` to the end of a first `kubectl exec`. How long a kubectl
// takes that asks nobody says what the peer's three programs cost by themselves.
func BenchmarkCold(b *testing.B) {
	ns := namespace(b)
	e := open(b, ns)
	var own, peer, alone times
	for round := 0; b.Loop(); round++ {
		var box *core.Box
		own.take(func() {
			box = create(b, e)
			hello(b, box)
		})
		remove(b, box)
		name := "bare-" + strconv.Itoa(round)
		peer.take(func() {
			bare(b, ns, name)
			kubectl(b, "exec", "--namespace", ns, name, "--", "echo", "hello")
		})
		kubectl(b, "delete", "pod", "--namespace", ns, name, "--now", "--wait=false")
		alone.take(func() { kubectl(b, "version", "--client") })
	}
	compare(b, own, "kubectl", peer)
	alone.report(b, "program")
}

// bare makes a pod that sleeps, and waits until it is ready.
func bare(b *testing.B, ns, name string) {
	b.Helper()
	cmd := exec.Command("kubectl", "create", "--namespace", ns, "--filename", "-")
	cmd.Stdin = strings.NewReader(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "` + name + `"}, "spec": {
		"automountServiceAccountToken": false, "enableServiceLinks": false, "hostUsers": false, "terminationGracePeriodSeconds": 0,
		"containers": [{"name": "box", "image": "localhost/busybox:1", "imagePullPolicy": "Never", "command": ["sleep", "1000000"],
			"resources": {"limits": {"cpu": "1", "memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "32Mi"}}}]}}`)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	kubectl(b, "wait", "--namespace", ns, "--for=condition=Ready", "--timeout=60s", "pod/"+name)
}

// BenchmarkEcho measures one command over REST up to its output, and beside it `kubectl
// exec` in the same pod.
func BenchmarkEcho(b *testing.B) {
	ns := namespace(b)
	c := rest(b, ns)
	box, err := c.CreateBox(b.Context(), plain())
	if err != nil {
		b.Fatal(err)
	}
	pod := podOf(b, ns, box.ID)
	var own, peer times
	answered(b, c, box.ID)
	for b.Loop() {
		own.take(func() { answered(b, c, box.ID) })
		peer.take(func() { kubectl(b, "exec", "--namespace", ns, pod, "--", "echo", "hello") })
	}
	compare(b, own, "kubectl", peer)
}

func podOf(b *testing.B, ns, id string) string {
	b.Helper()
	return strings.TrimPrefix(strings.TrimSpace(kubectl(b, "get", "pods", "--namespace", ns, "--selector", "sandbox/box="+id, "--output", "name")), "pod/")
}

// drain runs a command and passes its output to sink.
func drain(b *testing.B, box *core.Box, sink func(p []byte), cmd ...string) {
	b.Helper()
	e, err := box.Exec(b.Context(), options.Exec{Cmd: cmd})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	status, err := e.Stream(b.Context(), make([]byte, core.OutputBuffer), func(_ bool, p []byte) error {
		sink(p)
		return nil
	})
	if err != nil || status.ExitCode != 0 {
		b.Fatalf("%+v, %v", status, err)
	}
}

// BenchmarkOutput measures 256 MiB of output, and beside it the same of a box of this
// machine.
func BenchmarkOutput(b *testing.B) {
	const size = 256 << 20
	box := create(b, open(b, namespace(b)))
	defer remove(b, box)
	near := create(b, boxes.OpenConfig(b, engine.Config{Home: b.TempDir()}), func(o *options.Box) { o.Image, o.RootfsPath = "", rootfs.Busybox(b) })
	defer remove(b, near)
	var own, peer times
	all := func(box *core.Box) func() {
		return func() {
			n := 0
			drain(b, box, func(p []byte) { n += len(p) }, "head", "-c", strconv.Itoa(size), "/dev/zero")
			if n != size {
				b.Errorf("%d bytes", n)
			}
		}
	}
	for b.Loop() {
		own.take(all(box))
		peer.take(all(near))
	}
	compare(b, own, "local", peer)
	b.ReportMetric(size/1e6/own.percentile(50).Seconds(), "box-MB/s")
	b.ReportMetric(size/1e6/peer.percentile(50).Seconds(), "local-MB/s")
}

// BenchmarkCuts reads an output while the connections that carry it are cut, and checks
// that it is whole.
func BenchmarkCuts(b *testing.B) {
	for _, way := range []struct {
		reach string
		port  int
	}{{kubernetes.ReachDirect, 7443}, {kubernetes.ReachForward, 6443}} {
		b.Run(way.reach, func(b *testing.B) {
			const cuts, last = 200, 20_000_000
			box := create(b, open(b, namespace(b), func(c *kubernetes.Config) { c.Reach = way.reach }))
			defer remove(b, box)
			want := sha256.New()
			var line []byte
			size := 0
			for i := range last {
				line = append(strconv.AppendInt(line[:0], int64(i+1), 10), '\n')
				n, _ := want.Write(line)
				size += n
			}
			for b.Loop() {
				got, read, next, cut := sha256.New(), 0, 0, 0
				drain(b, box, func(p []byte) {
					_, _ = got.Write(p)
					read += len(p)
					if read >= next && cut < cuts && cutConnections(way.port) {
						cut++
						next = read + size/(cuts+cuts/4)
					}
				}, "seq", "1", strconv.Itoa(last))
				if read != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
					b.Errorf("read %d bytes with hash %s, want %d with %s", read, hex.EncodeToString(got.Sum(nil)), size, hex.EncodeToString(want.Sum(nil)))
				}
				if cut < cuts {
					b.Errorf("%d cuts, want %d", cut, cuts)
				}
			}
			b.ReportMetric(cuts, "cuts")
			b.ReportMetric(float64(size), "B")
		})
	}
}

// cutConnections cuts all TCP connections of this process to a port, and tells whether
// there was any.
func cutConnections(port int) (any bool) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		peer, _ := unix.Getpeername(fd)
		switch peer := peer.(type) {
		case *unix.SockaddrInet4:
			any = peer.Port == port && unix.Shutdown(fd, unix.SHUT_RDWR) == nil || any
		case *unix.SockaddrInet6:
			any = peer.Port == port && unix.Shutdown(fd, unix.SHUT_RDWR) == nil || any
		}
	}
	return any
}

// BenchmarkStopStart measures a stop and the start after it, of boxes that have changed
// nothing, 100 files of together 10 MB, and 500 MB that can't be compressed.
func BenchmarkStopStart(b *testing.B) {
	e := open(b, namespace(b), withDisks)
	for _, of := range []struct{ name, script string }{
		{"nothing", "true"},
		{"10MB-100-files", "mkdir /d; for i in $(seq 100); do head -c 100000 /dev/urandom > /d/$i; done"},
		{"500MB", "head -c 500000000 /dev/urandom > /f"},
	} {
		b.Run(of.name, func(b *testing.B) {
			box := create(b, e, func(o *options.Box) { o.MemoryMiB = 512 })
			defer remove(b, box)
			if _, err := box.Run(b.Context(), "sh", "-c", of.script); err != nil {
				b.Fatal(err)
			}
			var stops, starts times
			for b.Loop() {
				stops.take(func() {
					if _, err := box.Stop(b.Context(), time.Second); err != nil {
						b.Fatal(err)
					}
				})
				starts.take(func() {
					if _, err := box.Start(b.Context()); err != nil {
						b.Fatal(err)
					}
				})
			}
			b.ReportMetric(stops.percentile(50).Seconds()*1000, "stop-p50-ms")
			b.ReportMetric(starts.percentile(50).Seconds()*1000, "start-p50-ms")
		})
	}
}
