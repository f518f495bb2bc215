//go:build kubernetes

package suite

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/options"
)

// kubelet has the kubelet of the node stand still until the test calls again.
func kubelet(t *testing.T) (again func()) { return halted(t, "kubelet") }

// halted has a part of the cluster stand still until the test calls again.
func halted(t *testing.T, part string) (again func()) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("RUN"), part+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = unix.Kill(pid, unix.SIGSTOP)
	}
	if err != nil {
		t.Fatal(err)
	}
	again = func() { _ = unix.Kill(pid, unix.SIGCONT) }
	t.Cleanup(again)
	return again
}

// TestKubeletStands shows that what runs in boxes that are reached directly does not need
// the kubelet, and what begins does not either.
func TestKubeletStands(t *testing.T) { //nolint:paralleltest // other tests need the kubelet
	e := open(t, namespace(t), func(c *kubernetes.Config) { c.Reach = kubernetes.ReachDirect })
	rec := made(t, e)
	p, err := e.Exec(t.Context(), rec.ID, options.Exec{Cmd: []string{"sh", "-c", "while sleep 0.1; do echo tick; done"}})
	if err != nil {
		t.Fatal(err)
	}
	ticks := make(chan struct{}, 10000)
	x := core.NewExec(p)
	defer x.Close()
	go func() {
		_, _ = x.Stream(t.Context(), make([]byte, 64), func(bool, []byte) error { ticks <- struct{}{}; return nil })
	}()
	<-ticks
	again := kubelet(t)
	for len(ticks) > 0 {
		<-ticks
	}
	for range 20 {
		<-ticks
	}
	if out, err := sh(t, e, rec.ID, "echo still"); err != nil || out != "still\n" {
		t.Errorf("a new command: %q, %v", out, err)
	}
	again()
	if _, err := createBox(t.Context(), e); err != nil {
		t.Errorf("a box after that: %v", err)
	}
}
