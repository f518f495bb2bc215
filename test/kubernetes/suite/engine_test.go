//go:build kubernetes

// Package suite tests the engine whose boxes are pods, in a real cluster: see
// `make test-kubernetes`, which starts one. It is no part of `go test ./...`.
package suite

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/enginetest"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// program is the image with sandbox-pod that the cluster of the tests has.
const program = "localhost/sandbox-pod:dev"

// namespace makes a namespace that ends with the test, and returns its name.
func namespace(t testing.TB) string {
	t.Helper()
	name := "sandbox-" + strings.TrimPrefix(ids.Box.New(), string(ids.Box))
	kubectl(t, "create", "namespace", name)
	t.Cleanup(func() { kubectl(t, "delete", "namespace", name, "--wait=false") })
	kubectl(t, "create", "serviceaccount", "default", "--namespace", name) // sooner than the controllers do
	return name
}

func kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("kubectl", args...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "already exists") {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// open returns an engine on a namespace, which is closed when the test ends.
func open(t testing.TB, namespace string, change ...func(*kubernetes.Config)) *kubernetes.Engine {
	t.Helper()
	c := kubernetes.Config{
		Kubeconfig: os.Getenv("KUBECONFIG"), Namespace: namespace, Program: program, PullPolicy: "Never",
		Reach: os.Getenv("SANDBOX_TEST_REACH"), ScheduleTimeout: time.Minute,
	}
	for _, do := range change {
		do(&c)
	}
	e, err := kubernetes.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// differs is what boxes of a cluster do not do, or otherwise, and why.
var (
	lacks = map[enginetest.Ability]string{
		enginetest.Stop:      "without --disk-class what a box has written goes with its pod",
		enginetest.Pause:     "Kubernetes has no way to have a pod's processes stand still",
		enginetest.Idle:      "no program has to be there that would see that nobody uses a box",
		enginetest.AutoStart: "it needs boxes that are stopped",
		enginetest.OnHost:    "boxes are on other machines",
	}
	lacksDisks = map[enginetest.Ability]string{enginetest.Pause: lacks[enginetest.Pause], enginetest.OnHost: lacks[enginetest.OnHost]}
	instead    = map[string]enginetest.Instead{
		"root file system": {Reason: "a directory of one host is none of the nodes'", Test: func(t *testing.T, e core.Engine, _ func(...func(*options.Box)) *core.Box) {
			o := options.Defaults()
			o.RootfsPath, o.CPUs = "/", 1
			_, err := e.Create(t.Context(), core.CreateRequest{ID: ids.Box.New(), Options: o})
			if !fault.Is(err, fault.Unsupported) || len(fault.Of(err).Fields) != 1 || fault.Of(err).Fields[0].Field != "rootfs_path" {
				t.Errorf("got %v, want unsupported", err)
			}
		}},
	}
)

// run runs a command that must succeed, and returns its output.
func run(t testing.TB, box *core.Box, name string, args ...string) string {
	t.Helper()
	r, err := box.Run(t.Context(), append([]string{name}, args...)...)
	if err != nil || r.ExitCode == nil || *r.ExitCode != 0 {
		t.Errorf("%s %q: %+v, %v", name, args, r, err)
	}
	return r.Stdout
}

// TestEngineDisks runs the suite on an engine that gives boxes disks.
func TestEngineDisks(t *testing.T) {
	t.Parallel()
	set, _, ask := withRegistry(t)
	enginetest.Run(t, enginetest.Subject{
		New:   func(t *testing.T) core.Engine { return open(t, namespace(t), withDisks, ask) },
		Plain: "localhost/busybox:1", Set: set, Lacks: lacksDisks, Instead: instead,
	})
}

// withDisks has an engine give boxes disks.
func withDisks(c *kubernetes.Config) { c.DiskClass = "disks" }

func TestEngine(t *testing.T) {
	t.Parallel()
	set, _, ask := withRegistry(t)
	enginetest.Run(t, enginetest.Subject{
		New:   func(t *testing.T) core.Engine { return open(t, namespace(t), ask) },
		Plain: "localhost/busybox:1", Set: set, Lacks: lacks, Instead: instead,
	})
}
