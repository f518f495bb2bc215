//go:build kubernetes

package suite

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// The tests of agent-sandbox run where it does: `make test-kubernetes` starts it behind
// the others.

// pooled returns an engine for which agent-sandbox keeps n pods ready.
func pooled(t testing.TB, ns string, n int, change ...func(*kubernetes.Config)) *kubernetes.Engine {
	t.Helper()
	return open(t, ns, append([]func(*kubernetes.Config){func(c *kubernetes.Config) { c.Pool, c.Reach = n, kubernetes.ReachDirect }}, change...)...)
}

// warmed makes a first box, removes it, and waits until so many pods are ready in the pool
// for boxes like it.
func warmed(t testing.TB, e *kubernetes.Engine, ns string, n int) {
	t.Helper()
	rec := made(t, e)
	if err := e.Remove(t.Context(), rec.ID, true); err != nil {
		t.Fatal(err)
	}
	full(t, ns, n)
}

// waiting selects the pods that wait in a pool.
const waiting = "sandbox/pool,!sandbox/box"

// full waits until the pool of a namespace has so many pods that run.
func full(t testing.TB, ns string, n int) {
	t.Helper()
	for range 600 {
		out := kubectl(t, "get", "pods", "--namespace", ns, "--selector", waiting, "--output=jsonpath={.items[*].status.containerStatuses[0].state.running.startedAt}")
		if len(strings.Fields(out)) >= n {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the pool has no %d pods: %s", n, kubectl(t, "get", "sandboxwarmpools,sandboxtemplates,sandboxes,pods", "--namespace", ns))
}

// podFor returns the name of the pod of a box, and the pool that it comes from, or "".
func podFor(t testing.TB, ns, id string) (pod, pool string) {
	t.Helper()
	out := kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/box="+id, "--output=jsonpath={.items[*].metadata.name} {.items[*].metadata.labels.sandbox/pool}")
	pod, pool, _ = strings.Cut(out, " ")
	return pod, pool
}

// claimless checks that no box is left, no claim, and no Sandbox but those of a pool.
func claimless(t testing.TB, ns string) {
	t.Helper()
	var left string
	for range 120 {
		left = kubectl(t, "get", "sandboxclaims", "--namespace", ns, "--output=name")
		left += kubectl(t, "get", "sandboxes", "--namespace", ns, "--output=name", "--selector=agents.x-k8s.io/claim-uid")
		left += kubectl(t, "get", "pods,configmaps", "--namespace", ns, "--output=name", "--selector=sandbox/slot,!sandbox/pool,!sandbox/spare")
		left += kubectl(t, "get", "pods", "--namespace", ns, "--output=name", "--selector=sandbox/box")
		if !strings.Contains(left, "/") {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Errorf("left: %s", left)
}

// TestAgentSandbox makes a box of a pod of a warm pool, which is like any other box, and
// removes it.
func TestAgentSandbox(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := pooled(t, ns, 2)
	warmed(t, e, ns, 2)
	began := time.Now()
	rec := made(t, e, func(o *options.Box) {
		o.Name, o.Env, o.TTLSeconds = "warm", map[string]string{"A": "of the box"}, 3600
	})
	t.Logf("a claim took %v", time.Since(began))
	pod, pool := podFor(t, ns, rec.ID)
	if pool == "" {
		t.Error("its pod is none of the pool")
	}
	if out := kubectl(t, "get", "secrets", "--namespace", ns, "--selector=sandbox/slot="+pod, "--output=name"); strings.Contains(out, "/") {
		t.Errorf("it has a Secret: %s", out)
	}
	if rec.ExpiresAt == nil || rec.Options.Name != "warm" {
		t.Errorf("%+v", rec)
	}
	other := pooled(t, ns, 2) // knows its key as well
	for _, one := range []*kubernetes.Engine{e, other} {
		if out, err := sh(t, one, rec.ID, "echo $A; env | grep SANDBOX_POD; cat /proc/1/environ 2>/dev/null"); err != nil || out != "of the box\n" {
			t.Errorf("%q, %v", out, err)
		}
	}
	seconds := 60
	if now, err := other.Update(t.Context(), rec.ID, options.Update{TTLSeconds: &seconds}); err != nil || now.ExpiresAt == nil || time.Until(*now.ExpiresAt) > time.Minute {
		t.Errorf("%+v, %v", now, err)
	}
	if err := other.Remove(t.Context(), rec.ID, true); err != nil {
		t.Error(err)
	}
	claimless(t, ns)
	full(t, ns, 2)
}

// TestAgentSandboxKey has the certificate of a pod's key changed by hand: the init there is
// not talked to any more.
func TestAgentSandboxKey(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := pooled(t, ns, 2)
	warmed(t, e, ns, 2)
	one, two := made(t, e), made(t, e)
	var pods [2]string
	for i, rec := range []core.Record{one, two} {
		var pool string
		if pods[i], pool = podFor(t, ns, rec.ID); pool == "" {
			t.Fatal("a pod is none of the pool")
		}
	}
	foreign := kubectl(t, "get", "pod", pods[1], "--namespace", ns, "--output=jsonpath={.metadata.annotations.sandbox/certificate}")
	for name, text := range map[string]string{"another pod's": foreign, "damaged": "x", "none": ""} {
		kubectl(t, "annotate", "pod", pods[0], "--namespace", ns, "--overwrite", "sandbox/certificate="+text)
		if _, err := sh(t, pooled(t, ns, 0), one.ID, "true"); !fault.Is(err, fault.Engine) || !strings.Contains(err.Error(), "verify the init") {
			t.Errorf("%s: %v, want that it is not verified", name, err)
		}
	}
	for _, rec := range []core.Record{one, two} {
		if err := e.Remove(t.Context(), rec.ID, true); err != nil {
			t.Error(err)
		}
	}
	claimless(t, ns)
}

// TestAgentSandboxTogether has two engines make more boxes at once than the pool has pods.
// No pod becomes two boxes, and all boxes work.
func TestAgentSandboxTogether(t *testing.T) {
	t.Parallel()
	const boxes, pool = 12, 4
	ns := namespace(t)
	engines := []*kubernetes.Engine{pooled(t, ns, pool), pooled(t, ns, pool)}
	warmed(t, engines[0], ns, pool)
	if _, err := engines[1].List(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var recs [boxes]core.Record
	for i := range boxes {
		all.Go(func() {
			e := engines[i%2]
			var err error
			if recs[i], err = createBox(t.Context(), e); err != nil {
				t.Error(err)
				return
			}
			want := recs[i].ID + "\n"
			if out, err := sh(t, e, recs[i].ID, "cat /mine 2>/dev/null; echo "+recs[i].ID+" >/mine; cat /mine"); err != nil || out != want {
				t.Errorf("%q, %v, want %q", out, err, want)
			}
		})
	}
	all.Wait()
	pods := map[string]bool{}
	warm := 0
	for _, rec := range recs {
		pod, pool := podFor(t, ns, rec.ID)
		if pods[pod] || strings.Contains(pool, " ") {
			t.Errorf("box %s: pods %s %s", rec.ID, pod, pool)
		}
		pods[pod] = true
		if pool != "" {
			warm++
		}
	}
	t.Logf("%d boxes, %d of them of the pool", len(pods), warm)
	if warm < pool {
		t.Errorf("%d boxes are of the pool, which had %d pods", warm, pool)
	}
	for i, rec := range recs {
		if err := engines[(i+1)%2].Remove(t.Context(), rec.ID, true); err != nil {
			t.Error(err)
		}
	}
	claimless(t, ns)
}

// TestAgentSandboxLost has claims, pods and pools deleted by hand, and a claim left by a
// server that has died. What is left is deleted, and the next box is made as ever.
func TestAgentSandboxLost(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := pooled(t, ns, 1, func(c *kubernetes.Config) { c.ScheduleTimeout = 10 * time.Second })
	warmed(t, e, ns, 1)
	for _, kind := range []string{"sandboxclaim", "sandbox", "pod"} {
		t.Run(kind, func(t *testing.T) { //nolint:paralleltest // one after the other
			full(t, ns, 1)
			rec := made(t, e)
			name, pool := podFor(t, ns, rec.ID)
			if pool == "" {
				t.Fatal("its pod is none of the pool")
			}
			if kind == "sandboxclaim" {
				name = pod(rec.ID) + "-claim"
			}
			kubectl(t, "delete", kind, name, "--namespace", ns, "--wait=false")
			for range 300 {
				if _, err := e.Get(t.Context(), rec.ID); fault.Is(err, fault.BoxNotFound) {
					claimless(t, ns)
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Error("the box is still there")
		})
	}
	full(t, ns, 1)
	pool := kubectl(t, "get", "sandboxwarmpools", "--namespace", ns, "--output=jsonpath={.items[*].metadata.name}")
	apply(t, `{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "spec": {"warmPoolRef": {"name": "`+pool+`"}},
		"metadata": {"name": "left", "namespace": "`+ns+`", "labels": {"sandbox/slot": "left", "sandbox/box": "box_left"}}}`)
	claimless(t, ns)
	kubectl(t, "delete", "sandboxwarmpool", pool, "--namespace", ns)
	rec := made(t, e)
	if err := e.Remove(t.Context(), rec.ID, true); err != nil {
		t.Error(err)
	}
	claimless(t, ns)
	full(t, ns, 1)
}

// TestAgentSandboxKinds makes boxes of two images in turns: there is one pool, for the last
// one, nothing is left of the others, and boxes of another size are of its pods too.
func TestAgentSandboxKinds(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := pooled(t, ns, 1)
	for _, image := range []string{"localhost/busybox:1", "localhost/enginetest:1", "localhost/busybox:1"} {
		var recs []core.Record
		box := func(mib int) (pool string) {
			recs = append(recs, made(t, e, func(o *options.Box) { o.Image, o.User, o.MemoryMiB = image, "0", mib }))
			_, pool = podFor(t, ns, recs[len(recs)-1].ID)
			return pool
		}
		box(plain().MemoryMiB)
		only(t, ns, image)
		for tries := 5; box(2*plain().MemoryMiB) == ""; tries-- { // a node may be too slow for a change of size
			if tries == 0 {
				t.Fatalf("%s: no box of another size is of the pool", image)
			}
			full(t, ns, 1)
		}
		for _, rec := range recs {
			if err := e.Remove(t.Context(), rec.ID, true); err != nil {
				t.Error(err)
			}
		}
	}
	claimless(t, ns)
}

// only waits until there is one pool, whose pod runs, for boxes of an image.
func only(t *testing.T, ns, image string) {
	t.Helper()
	full(t, ns, 1)
	var pods, templates string
	for range 600 {
		pods = kubectl(t, "get", "pods", "--namespace", ns, "--selector", waiting, "--output=jsonpath={.items[*].spec.containers[0].image} {.items[*].status.phase}")
		templates = kubectl(t, "get", "sandboxtemplates", "--namespace", ns, "--output=jsonpath={.items[*].spec.podTemplate.spec.containers[0].image}")
		if pods == image+" Running" && templates == image {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("pods %s, templates %s, want %s alone", pods, templates, image)
}

// TestAgentSandboxOff has a server that does not use it.
func TestAgentSandboxOff(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := pooled(t, ns, 1, func(c *kubernetes.Config) { c.AgentSandbox = kubernetes.AgentSandboxOff })
	rec := made(t, e)
	spare(t, ns)
	if out := kubectl(t, "get", "sandboxwarmpools,sandboxtemplates", "--namespace", ns, "--output=name"); strings.Contains(out, "/") {
		t.Errorf("it has made %s", out)
	}
	if err := e.Remove(t.Context(), rec.ID, true); err != nil {
		t.Error(err)
	}
}

// TestAgentSandboxRights works with the rights of deploy/kubernetes/agent-sandbox, and with
// each of them missing: then a request is refused by that name, or the pods that are kept
// ready are ours.
func TestAgentSandboxRights(t *testing.T) {
	t.Parallel()
	base, all := rights(t, "."), rights(t, "agent-sandbox")
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		if own, err := twoKinds(t, slices.Concat(base, all)); own || err != nil {
			t.Errorf("the pods are ours: %v, %v", own, err)
		}
	})
	for i, r := range all {
		for _, verb := range r.Verbs {
			t.Run(r.Resources[0]+" "+verb, func(t *testing.T) {
				t.Parallel()
				own, err := twoKinds(t, slices.Concat(base, without(all, i, verb)))
				if named := err != nil && strings.Contains(err.Error(), verb) && strings.Contains(err.Error(), r.Resources[0]); own == named {
					t.Errorf("without it the pods are ours: %v, %v, want that or a failure that names it", own, err)
				}
			})
		}
	}
}

// twoKinds makes and removes boxes of two images, two of each, with these rights alone. It
// returns whether the pods that are kept ready are ours, or what was refused.
func twoKinds(t *testing.T, rules []rule) (own bool, err error) {
	t.Helper()
	ns := namespace(t)
	e := limited(t, ns, rules, func(c *kubernetes.Config) { c.Pool = 1 })
	for _, image := range []string{"localhost/busybox:1", "localhost/enginetest:1"} {
		of := func(o *options.Box) { o.Image, o.User = image, "0" }
		first := made(t, e, of)
		if kept(t, ns, image) == "" {
			return true, nil
		}
		warm, err := createBox(t.Context(), e, of)
		if err != nil {
			return false, err
		}
		for _, id := range []string{first.ID, warm.ID} {
			if err := e.Remove(t.Context(), id, true); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// kept waits until a pod for boxes of an image is ready, and returns its pool; "" if it is
// ours.
func kept(t *testing.T, ns, image string) (pool string) {
	t.Helper()
	for range 600 {
		out := kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/slot,!sandbox/box",
			"--output=jsonpath={range .items[*]}{.spec.containers[0].image} {.status.phase} {.metadata.labels.sandbox/pool}{\"\\n\"}{end}")
		for line := range strings.Lines(out) {
			if pool, ready := strings.CutPrefix(line, image+" Running "); ready {
				return strings.TrimSpace(pool)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no pod of %s is ready", image)
	return ""
}

// controller has agent-sandbox's controller stand still until the test calls again.
func controller(t *testing.T) (again func()) { return halted(t, "agents") }

// TestAgentSandboxAway has the controller stand still: a create does without it after a
// few seconds, the next ones at once, and spares of our own take over. A pool that it has
// never noticed keeps nobody waiting.
func TestAgentSandboxAway(t *testing.T) { //nolint:paralleltest // other tests need the controller
	ns, fresh := namespace(t), namespace(t)
	e := pooled(t, ns, 1)
	warmed(t, e, ns, 1)
	again := controller(t)
	var took [2]time.Duration
	var recs []core.Record
	for i := range took {
		began := time.Now()
		rec := made(t, e)
		took[i] = time.Since(began)
		if _, pool := podFor(t, ns, rec.ID); pool != "" {
			t.Error("its pod is of the pool")
		}
		recs = append(recs, rec)
	}
	t.Logf("without the controller a create takes %v, the next one %v", took[0], took[1])
	if took[0] > 15*time.Second || took[1] > took[0] {
		t.Error("that is too long")
	}
	spare(t, ns)
	unseen := pooled(t, fresh, 1)
	recs = append(recs, made(t, unseen))
	spare(t, fresh)
	again()
	full(t, fresh, 1)
	for _, rec := range recs {
		if err := e.Remove(t.Context(), rec.ID, true); err != nil && !fault.Is(err, fault.BoxNotFound) {
			t.Error(err)
		}
	}
	claimless(t, ns)
}
