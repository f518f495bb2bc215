//go:build kubernetes

package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
)

const busybox = "localhost/busybox:1"

// small returns the options of a box that most tests want.
func small(change ...func(*options.Box)) options.Box {
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.AutoRemove = busybox, 1, 64, false
	for _, do := range change {
		do(&o)
	}
	return o
}

func createBox(ctx context.Context, e *kubernetes.Engine, change ...func(*options.Box)) (core.Record, error) {
	return e.Create(ctx, core.CreateRequest{ID: ids.Box.New(), Options: small(change...)})
}

// made makes a box, which must work.
func made(t testing.TB, e *kubernetes.Engine, change ...func(*options.Box)) core.Record {
	t.Helper()
	rec, err := createBox(t.Context(), e, change...)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// sh runs a command in a box by a shell, and returns what it has printed.
func sh(t testing.TB, e *kubernetes.Engine, id, script string) (string, error) {
	t.Helper()
	p, err := e.Exec(t.Context(), id, options.Exec{Cmd: []string{"sh", "-c", script}})
	if err != nil {
		return "", err
	}
	x := core.NewExec(p)
	defer x.Close()
	var out strings.Builder
	_, err = x.Stream(t.Context(), make([]byte, 4096), func(_ bool, b []byte) error {
		out.Write(b)
		return nil
	})
	return out.String(), err
}

// says checks that err has a kind and the words.
func says(t testing.TB, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("got %v, want %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	t.Log(err)
}

// empty checks that nothing is left in a namespace but what all boxes share.
func empty(t testing.TB, namespace string) {
	t.Helper()
	var left string
	for range 120 {
		left = kubectl(t, "get", "pods,secrets,configmaps,services,networkpolicies", "--namespace", namespace, "--output=name", "--selector=sandbox/slot")
		left += kubectl(t, "get", "persistentvolumeclaims", "--namespace", namespace, "--output=name", "--selector=sandbox/box")
		if !strings.Contains(left, "/") { // as in pod/NAME
			return
		}
		time.Sleep(500 * time.Millisecond) // the cluster's collector tells nobody when it has done its work
	}
	t.Errorf("left: %s", left)
}

// spare waits until a namespace has a pod of our own that is kept ready.
func spare(t testing.TB, ns string) {
	t.Helper()
	for range 600 {
		if kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/spare", "--output=jsonpath={.items[*].status.phase}") == "Running" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("there is no spare")
}

// leavesNothing removes the last box of a namespace, and wants nothing to be left of it.
func leavesNothing(t testing.TB, e *kubernetes.Engine, namespace, id string, force bool) {
	t.Helper()
	if err := e.Remove(t.Context(), id, force); err != nil {
		t.Error(err)
	}
	empty(t, namespace)
}

// status waits until a box has a status, and returns its record.
func status(t testing.TB, e *kubernetes.Engine, id string, want api.BoxStatus) core.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		rec, err := e.Get(t.Context(), id)
		if err != nil && !fault.Is(err, fault.BoxNotFound) { // made by hand, it is seen a moment later
			t.Fatal(err)
		}
		if rec.Status == want {
			return rec
		}
		select {
		case <-ctx.Done():
			t.Fatalf("box %s is %s (%s, %v), want %s", id, rec.Status, rec.Reason, rec.Error, want)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestCreateFails shows creates that can't succeed. They say why, and leave nothing.
func TestCreateFails(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*options.Box)
		pull   string
		kind   fault.Kind
		words  []string
	}{
		"no such image":    {func(o *options.Box) { o.Image = "127.0.0.1:1/nobody/nothing:1" }, "IfNotPresent", fault.Image, []string{"127.0.0.1:1/nobody/nothing:1", "ErrImagePull", "connection refused"}},
		"image never had":  {func(o *options.Box) { o.Image = "localhost/nothing:1" }, "Never", fault.Image, []string{"ErrImageNeverPull", "localhost/nothing:1"}},
		"name of no image": {func(o *options.Box) { o.Image = "Not/An:Image:" }, "Never", fault.Image, []string{"InvalidImageName"}},
		"too many CPUs":    {func(o *options.Box) { o.CPUs = 10000 }, "Never", fault.ResourceExhausted, []string{"Insufficient cpu"}},
		"too much memory":  {func(o *options.Box) { o.MemoryMiB = 1 << 30 }, "Never", fault.ResourceExhausted, []string{"Insufficient memory"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			e := open(t, ns, func(k *kubernetes.Config) { k.PullPolicy, k.ScheduleTimeout = c.pull, 20*time.Second })
			_, err := createBox(t.Context(), e, func(o *options.Box) { o.Name = "one" }, c.change)
			says(t, err, c.kind, c.words...)
			empty(t, ns)
		})
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	kubectl(t, "create", "quota", "one", "--hard=pods=1", "--namespace", ns)
	e := open(t, ns)
	rec := made(t, e)
	_, err := createBox(t.Context(), e)
	says(t, err, fault.ResourceExhausted, "quota", "pods=1")
	leavesNothing(t, e, ns, rec.ID, true)
}

// TestBoxFails shows boxes that the cluster ends. Their records say why, and they can be
// removed.
func TestBoxFails(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns)
	end := func(t *testing.T, rec core.Record, reason string, kind fault.Kind, words ...string) {
		t.Helper()
		now := status(t, e, rec.ID, api.Failed)
		if now.Reason != reason || now.Error == nil || now.Error.Code != kind {
			t.Fatalf("got %s %+v, want %s %v", now.Reason, now.Error, reason, kind)
		}
		t.Log(now.Error.Message)
		for _, w := range words {
			if !strings.Contains(now.Error.Message, w) {
				t.Errorf("%q does not say %q", now.Error.Message, w)
			}
		}
		if _, err := sh(t, e, rec.ID, "true"); err == nil {
			t.Error("a command ran")
		}
		if err := e.Remove(t.Context(), rec.ID, false); err != nil {
			t.Error(err)
		}
	}
	t.Run("no memory for init", func(t *testing.T) {
		t.Parallel()
		rec := made(t, e, func(o *options.Box) { o.MemoryMiB = 32 })
		// Files in memory can't be taken from a process, so that at last none is left but init.
		for range 50 {
			if _, err := sh(t, e, rec.ID, "dd if=/dev/zero of=/dev/shm/f bs=64k count=1024 2>/dev/null"); err != nil {
				break
			}
		}
		end(t, rec, "oom_killed", fault.ResourceExhausted, "32 MiB")
	})
	t.Run("no disk", func(t *testing.T) {
		t.Parallel()
		rec := made(t, e, func(o *options.Box) { o.DiskSizeGB = 1 })
		if _, err := sh(t, e, rec.ID, "dd if=/dev/zero of=/tmp/f bs=1M count=1100 2>/dev/null; sleep 100"); err == nil {
			t.Log("the command has ended with its box")
		}
		end(t, rec, "evicted", fault.ResourceExhausted, "1")
	})
	t.Run("node lost", func(t *testing.T) {
		t.Parallel()
		rec := core.Record{ID: ids.Box.New(), Options: small(), CreatedAt: time.Now()}
		record, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		// A node that nobody answers for, so that no kubelet changes what is said of the pod.
		apply(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}}`, ns))
		t.Cleanup(func() { kubectl(t, "delete", "node", ns, "--wait=false") })
		apply(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": %q, "labels": {"sandbox/slot": %[1]q, "sandbox/box": %[3]q}, "annotations": {"sandbox/record": %[4]s}},
			"spec": {"nodeName": %[2]q, "containers": [{"name": "box", "image": %[5]q}]}}`, pod(rec.ID), ns, rec.ID, quoted(string(record)), busybox))
		lost := fmt.Sprintf(`{"status": {"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": %q,
			"reason": "DeletionByTaintManager", "message": "Taint manager: deleting due to NoExecute taint"}]}}`, time.Now().UTC().Format(time.RFC3339))
		kubectl(t, "patch", "pod", pod(rec.ID), "--namespace", ns, "--subresource=status", "--patch", lost)
		kubectl(t, "delete", "pod", pod(rec.ID), "--namespace", ns, "--wait=false")
		end(t, rec, "node_lost", fault.Engine, "NoExecute taint")
	})
	t.Run("damaged record", func(t *testing.T) {
		t.Parallel()
		rec := made(t, e)
		damage := []string{
			"", "null", "{}", "[]", "7", `"x"`, "{", `{"id": 1}`, `{"id": "box_other"}`, `{"id": "` + rec.ID + `", "created_at": "yesterday"}`,
			`{"id": "` + rec.ID + `", "options": {"env": []}}`, "\x01", strings.Repeat("[", 100000), strings.Repeat("x", 200000),
		}
		for _, text := range damage {
			file := filepath.Join(t.TempDir(), "patch.json")
			if err := os.WriteFile(file, fmt.Appendf(nil, `{"metadata": {"annotations": {"sandbox/record": %s}}}`, quoted(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			kubectl(t, "patch", "pod", pod(rec.ID), "--namespace", ns, "--patch-file", file)
			now := status(t, e, rec.ID, api.Failed)
			if now.Error == nil || now.Error.Code != fault.Storage || !strings.Contains(now.Error.Message, "sandbox/record") {
				t.Errorf("%.60q: %+v", text, now.Error)
			}
			if _, err := e.List(t.Context()); err != nil {
				t.Errorf("%.60q: list: %v", text, err)
			}
		}
		end(t, rec, "record_damaged", fault.Storage)
	})
	t.Run("deleted by hand", func(t *testing.T) {
		t.Parallel()
		rec := made(t, e)
		told := make(chan error, 1)
		started := make(chan struct{})
		p, err := e.Exec(t.Context(), rec.ID, options.Exec{Cmd: []string{"sh", "-c", "echo up; sleep 1000"}})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			x := core.NewExec(p)
			defer x.Close()
			_, err := x.Stream(t.Context(), make([]byte, 64), func(bool, []byte) error { close(started); return nil })
			told <- err
		}()
		<-started
		kubectl(t, "delete", "pod", pod(rec.ID), "--namespace", ns, "--force", "--grace-period=0")
		select {
		case err := <-told:
			t.Logf("the reader is told: %v", err)
			if err != nil && !fault.Is(err, fault.BoxNotFound) {
				t.Errorf("the reader is told %v, want box_not_found", err)
			}
		case <-time.After(time.Minute):
			t.Error("the reader is told nothing")
		}
		_, err = e.Get(t.Context(), rec.ID)
		says(t, err, fault.BoxNotFound)
		_, err = sh(t, e, rec.ID, "true")
		says(t, err, fault.BoxNotFound)
	})
}

// pod returns the name of the pod of a box that was no spare.
func pod(id string) string { return strings.ReplaceAll(id, "_", "-") }

// kubeconfig writes one for the cluster of the tests, with other members of a user.
func kubeconfig(t testing.TB, server, user string) string {
	t.Helper()
	keys := filepath.Dir(os.Getenv("KUBECONFIG"))
	cluster := fmt.Sprintf("server: %q", server)
	if strings.HasPrefix(server, "https:") {
		cluster += ", certificate-authority: " + filepath.Join(keys, "ca.crt")
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {%s}}], users: [{name: u, user: {%s}}], contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`, cluster, user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const apiServer = "https://127.0.0.1:6443"

func admin() string {
	keys := filepath.Dir(os.Getenv("KUBECONFIG"))
	return fmt.Sprintf("client-certificate: %s/admin.crt, client-key: %s/admin.key", keys, keys)
}

// TestNoWay shows programs that the cluster does not let in, or that ask for what is not
// there. A create says what is missing.
func TestNoWay(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		user, namespace string
		server          string
		kind            fault.Kind
		words           []string
	}{
		"no rights":    {user: admin() + ", as: nobody", kind: fault.Engine, words: []string{"nobody", "list", "pods"}},
		"no namespace": {user: admin(), namespace: "there-is-none", kind: fault.Engine, words: []string{"there-is-none", "not found"}},
		"bad token":    {user: "token: wrong", kind: fault.Engine, words: []string{"credentials"}},
		"expired":      {user: expired(t), kind: fault.Engine, words: []string{"credentials", "expired"}},
		"nobody there": {user: admin(), server: "https://127.0.0.1:1", kind: fault.Unavailable, words: []string{"127.0.0.1:1", "refused"}},
		"other server": {user: admin(), server: "http://127.0.0.1:6443", kind: fault.InvalidArgument},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, to := c.namespace, c.server
			if ns == "" {
				ns = namespace(t)
			}
			if to == "" {
				to = apiServer
			}
			e := open(t, ns, func(k *kubernetes.Config) { k.Kubeconfig = kubeconfig(t, to, c.user) })
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := createBox(ctx, e)
			says(t, err, c.kind, c.words...)
		})
	}
}

// expired returns a user whose certificate was good until yesterday.
func expired(t testing.TB) string {
	t.Helper()
	keys, dir := filepath.Dir(os.Getenv("KUBECONFIG")), t.TempDir()
	for _, args := range [][]string{
		{"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=system:masters/CN=late", "-keyout", dir + "/key", "-out", dir + "/csr"},
		{"x509", "-req", "-in", dir + "/csr", "-CA", keys + "/ca.crt", "-CAkey", keys + "/ca.key", "-set_serial", "7", "-days", "-1", "-out", dir + "/crt"},
	} {
		out, err := exec.Command("openssl", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("openssl: %v: %s", err, out)
		}
	}
	return fmt.Sprintf("client-certificate: %s/crt, client-key: %s/key", dir, dir)
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a string
	return b
}

// apply makes an object.
func apply(t testing.TB, text string) {
	t.Helper()
	c := exec.Command("kubectl", "apply", "--validate=false", "-f", "-")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("apply %s: %v: %s", text, err, out)
	}
}
