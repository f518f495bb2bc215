//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandbox/core"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// counter counts the requests to the API server, except those that watch.
type counter struct {
	next     http.RoundTripper
	requests *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		c.requests.Add(1)
	}
	return c.next.RoundTrip(r)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// TestClaims has two engines claim spares on fake nodes (`make kubernetes-kwok`): pods
// that have no process, so that the claims alone are seen. Each becomes one box.
func TestClaims(t *testing.T) {
	const claims, together = 1000, 16
	ns := "claims-" + strings.TrimPrefix(ids.Box.New(), string(ids.Box))
	run(t, "kubectl", "wait", "--for=condition=Ready", "node", "--selector=type=kwok", "--timeout=10s")
	run(t, "kubectl", "create", "namespace", ns)
	t.Cleanup(func() { run(t, "kubectl", "delete", "namespace", ns, "--wait=false") })
	run(t, "kubectl", "wait", "--for=create", "serviceaccount/default", "--namespace", ns, "--timeout=30s")

	var requests atomic.Int64
	var engines [2]*Engine
	for i := range engines {
		c := Config{Kubeconfig: os.Getenv("KUBECONFIG"), Namespace: ns, Program: "none", Pool: 1}
		conn, err := c.connect()
		if err != nil {
			t.Fatal(err)
		}
		conn.rest.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &requests} })
		e, err := open(c, conn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		if err := e.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		engines[i] = e
	}
	o := options.Defaults()
	o.Image = "none"
	each(claims, together, func(int) {
		pod := engines[0].pod(podName(ids.Box.New()), o)
		pod.Labels[labelSpare] = engines[0].spares.key(o)
		pod.Spec.NodeSelector = map[string]string{"type": "kwok"}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}}
		if _, err := engines[0].post(t.Context(), pod); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, e := range engines {
		err := e.news.await(ctx, func() (bool, error) {
			return len(e.pods.all(func(p *corev1.Pod) bool { return container(p).State.Running != nil })) >= claims, nil
		})
		if err != nil {
			t.Fatal("the fake pods don't start: is kwok there?")
		}
	}

	requests.Store(0)
	var mu sync.Mutex
	boxes := map[string]string{} // by the UID of the pod
	tookNone := 0
	began := time.Now()
	each(claims, 2*together, func(i int) {
		id := ids.Box.New()
		pod, err := engines[i%2].spares.claim(t.Context(), core.Record{ID: id, Options: o, CreatedAt: time.Now()})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			t.Error(err)
		case pod == nil:
			tookNone++
		case boxes[string(pod.UID)] != "":
			t.Errorf("pod %s is box %s and %s", pod.Name, boxes[string(pod.UID)], id)
		case pod.Labels[labelBox] != id:
			t.Errorf("pod %s is box %s, want %s", pod.Name, pod.Labels[labelBox], id)
		default:
			boxes[string(pod.UID)] = id
		}
	})
	sent := float64(requests.Load()) / claims
	fmt.Printf("%d claims by 2 programs in %v: %d pods, %d found none, %.2f requests a claim\n", claims, time.Since(began).Round(time.Millisecond), len(boxes), tookNone, sent)
	if sent > 6 {
		t.Errorf("%.2f requests a claim", sent)
	}
	if len(boxes)+tookNone != claims || tookNone > claims/100 {
		t.Errorf("%d claims: %d pods, and %d found none", claims, len(boxes), tookNone)
	}
	// What the cluster says is what the engines were told. Each hears of the other's claims a
	// moment later.
	for _, e := range engines {
		err := e.news.await(ctx, func() (bool, error) {
			for uid, id := range boxes {
				if pod := e.pods.ofBox(id); pod == nil || string(pod.UID) != uid {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			t.Errorf("not each pod is the box that it was claimed for: %v", err)
		}
	}
}

// each calls do with the numbers below n, some at once.
func each(n, together int, do func(int)) {
	var all sync.WaitGroup
	places := make(chan struct{}, together)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	all.Wait()
}
