//go:build kubernetes

package suite

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// in runs a script in a box, which must print want.
func in(t *testing.T, e *kubernetes.Engine, id, script, want string) {
	t.Helper()
	if out, err := sh(t, e, id, script); err != nil || out != want {
		t.Fatalf("%s: %q, %v, want %q", script, out, err, want)
	}
}

func stopped(t *testing.T, e *kubernetes.Engine, id string) {
	t.Helper()
	if rec, err := e.Stop(t.Context(), id, time.Second); err != nil || rec.Status != api.Stopped {
		t.Fatalf("stop: %+v, %v", rec, err)
	}
}

func started(t *testing.T, e *kubernetes.Engine, id string) core.Record {
	t.Helper()
	rec, err := e.Start(t.Context(), id)
	if err != nil || rec.Status != api.Running {
		t.Fatalf("start: %+v, %v", rec, err)
	}
	return rec
}

// TestDisk stops and starts a box, by two programs, and wants all that it has changed to
// be as it was, also what its image has removed and what the kubelet mounts.
func TestDisk(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e, other := open(t, ns, withDisks), open(t, ns, withDisks)
	box := made(t, e, func(o *options.Box) { o.Name, o.Env = "kept", map[string]string{"WHO": "me"} })
	in(t, e, box.ID, `cd /; echo changed > etc/passwd.new; chown 7:8 etc/passwd.new; chmod 4750 etc/passwd.new
		rm -r home; mkdir -p data/empty; ln -s nowhere data/link; echo one > data/a; ln data/a data/b; mkfifo data/pipe
		truncate -s 1G data/sparse; touch -d '2001-02-03 04:05:06' data/a; echo $WHO`, "me\n")
	look := `cd /; stat -c '%n %f %u %g %h %s %Y' etc/passwd.new data data/empty data/link data/a data/b data/pipe data/sparse / bin
		readlink data/link; cat data/b; ls -d home 2>&1; cat etc/hosts | wc -l; ls -a / | sort | tr '\n' ' '`
	before, err := sh(t, e, box.ID, look)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was put back is saved again
		stopped(t, e, box.ID)
		for name, engine := range map[string]*kubernetes.Engine{"its server": e, "another": other} {
			rec := status(t, engine, box.ID, api.Stopped)
			if rec.Options.Name != "kept" || rec.StoppedAt == nil || rec.ImageID == "" {
				t.Errorf("%s says %+v", name, rec)
			}
		}
		started(t, other, box.ID)
		status(t, e, box.ID, api.Running)
		in(t, e, box.ID, look+"; echo $WHO", before+"me\n")
	}
	if pods := kubectl(t, "get", "pods", "--namespace", ns, "--no-headers"); strings.Count(pods, " Running ") != 1 { // another may be terminating
		t.Errorf("pods: %s", pods)
	}
	if err := other.Remove(t.Context(), box.ID, true); err != nil {
		t.Error(err)
	}
	stored := made(t, e)
	stopped(t, e, stored.ID)
	leavesNothing(t, e, ns, stored.ID, false)
}

// TestDiskStarts starts a box by two programs at once: it runs once.
func TestDiskStarts(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	engines := []*kubernetes.Engine{open(t, ns, withDisks), open(t, ns, withDisks)}
	box := made(t, engines[0])
	stopped(t, engines[0], box.ID)
	status(t, engines[1], box.ID, api.Stopped)
	var starts sync.WaitGroup
	for _, e := range engines {
		starts.Go(func() {
			if _, err := e.Start(t.Context(), box.ID); err != nil && !fault.Is(err, fault.InvalidState) {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	if pods := kubectl(t, "get", "pods", "--namespace", ns, "--no-headers"); strings.Count(pods, " Running ") != 1 {
		t.Errorf("pods: %s", pods)
	}
	in(t, engines[0], box.ID, "echo one", "one\n")
}

// TestDiskDeletedPod deletes the pod of a box by hand: the pod saves the disk within its
// grace.
func TestDiskDeletedPod(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, withDisks)
	box := made(t, e)
	in(t, e, box.ID, "echo kept > /file", "")
	kubectl(t, "delete", "pod", "--namespace", ns, "--selector=sandbox/box="+box.ID, "--wait=false")
	rec := status(t, e, box.ID, api.Failed)
	if rec.Reason != "pod_gone" || rec.Error == nil || !strings.Contains(rec.Error.Message, "start the box") {
		t.Errorf("got %+v, %+v", rec, rec.Error)
	}
	started(t, e, box.ID) // waits until the disk is saved
	in(t, e, box.ID, "cat /file", "kept\n")
}

// TestDiskDamaged starts a box whose saved disk is damaged.
func TestDiskDamaged(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, withDisks)
	box := made(t, e)
	in(t, e, box.ID, "echo nonsense > /.sandbox-disk/2.delta; echo done", "done\n") // for its next life
	stopped(t, e, box.ID)
	_, err := e.Start(t.Context(), box.ID)
	says(t, err, fault.Storage, "damaged")
	rec := status(t, e, box.ID, api.Failed)
	if rec.Reason != "disk_damaged" || rec.Error == nil || rec.Error.Code != fault.Storage {
		t.Errorf("got %+v, %+v", rec, rec.Error)
	}
	leavesNothing(t, e, ns, box.ID, false)
}

// TestDiskOrphans has claims and pods that a program has left which was killed: between
// the claim and its pod, and between the removal of a claim and that of its pod.
func TestDiskOrphans(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, withDisks, func(c *kubernetes.Config) { c.ScheduleTimeout = 5 * time.Second })
	box := made(t, e)
	kubectl(t, "delete", "persistentvolumeclaim", "--namespace", ns, "--selector=sandbox/box="+box.ID, "--wait=false")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it gives up while the pod starts
	defer cancel()
	if _, err := createBox(ctx, e); err == nil {
		t.Log("the pod was faster")
	}
	id := ids.Box.New()
	name := strings.ReplaceAll(id, "_", "-")
	apply(t, `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "`+name+`", "namespace": "`+ns+`", "labels": {"sandbox/box": "`+id+`"},
		"annotations": {"sandbox/record": "{\"id\": \"`+id+`\", \"state\": \"created\"}"}},
		"spec": {"storageClassName": "disks", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}`)
	for _, rec := range must(e.List(t.Context()))(t) {
		if rec.Status == api.Running {
			if err := e.Remove(t.Context(), rec.ID, true); err != nil && !fault.Is(err, fault.BoxNotFound) {
				t.Error(err)
			}
		}
	}
	empty(t, ns)
}

// TestDiskClass makes boxes where there is no disk for them.
func TestDiskClass(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, func(c *kubernetes.Config) { c.DiskClass, c.ScheduleTimeout = "none-such", 5*time.Second })
	_, err := createBox(t.Context(), e)
	says(t, err, fault.ResourceExhausted, "PersistentVolumeClaim")
	empty(t, ns)
	_, err = kubernetes.Open(kubernetes.Config{Program: program, DiskClass: "disks", Installed: true})
	says(t, err, fault.Config, "image volumes")
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
