package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/core/options"
)

// The kinds of kubernetes-sigs/agent-sandbox: a Sandbox is there in agentGroup, the others
// in "extensions." of it.
const (
	agentGroup   = "agents.x-k8s.io"
	agentVersion = "v1beta1"
	agentKinds   = "extensions." + agentGroup + "/" + agentVersion
)

// agents has agent-sandbox keep the pods from which boxes are made, where the cluster has
// it: a SandboxWarmPool for boxes like the last one, and a SandboxClaim for each box that
// is made of one of its pods. Its pods are all the same, so each makes its key pair
// itself: see vouch.
type agents struct {
	engine *Engine
	used   bool // set before there is any claim
	pools  *copies[*unstructured.Unstructured]
	claims *copies[*unstructured.Unstructured]

	mu        sync.Mutex
	described map[string]bool                // the pools that this process has described
	claiming  map[string]int                 // how many claims for boxes with a key have begun
	away      time.Time                      // until then the controller counts as away
	keys      map[types.UID]*ecdsa.PublicKey // of the inits in pods that wait; nil for one that is not known yet
}

const (
	// claimTimeout is how long the controller may take to answer a claim, and then the node
	// to tell the key of the pod: many times what it takes. Then a pod of our own is faster.
	claimTimeout = 3 * time.Second
	// absence is how long the controller counts as away after it has left a claim without
	// an answer: nothing tells when it is back.
	absence = time.Minute
	// observation is how long a new pool may go without the controller's notice, which takes
	// some milliseconds. Then the pods that are kept ready are ours.
	observation = 10 * time.Second
)

// discover finds out whether the cluster has agent-sandbox and lets this process see its
// pools and claims, and watches them from then on. Errors: those of failure.
func (a *agents) discover(ctx context.Context) error {
	e := a.engine
	if a.used || e.config.AgentSandbox == AgentSandboxOff {
		return nil
	}
	served, err := e.resources(ctx, "/apis/"+agentKinds)
	if apierrors.IsNotFound(err) || err == nil && !(served["sandboxtemplates"] && served["sandboxwarmpools"] && served["sandboxclaims"]) {
		return nil
	}
	if err != nil {
		return failure(err, "ask whether the cluster has agent-sandbox")
	}
	a.pools, a.claims = newCopies(e.news, nameOf[*unstructured.Unstructured]), newCopies(e.news, nameOf[*unstructured.Unstructured])
	watching, cancel := context.WithCancel(e.ctx)
	defer func() {
		if !a.used {
			cancel()
		}
	}()
	for client, all := range map[custom]*copies[*unstructured.Unstructured]{e.api.pools: a.pools, e.api.claims: a.claims} {
		e.work.Go(func() { mirror(watching, client, labelled(labelSlot), &unstructured.Unstructured{}, all, all.note) })
	}
	for _, all := range []*copies[*unstructured.Unstructured]{a.pools, a.claims} {
		if err := e.news.await(ctx, all.known); err != nil {
			if apierrors.IsForbidden(err) {
				return nil // it is there for others
			}
			return failure(err, "list the warm pools and claims of the namespace")
		}
	}
	a.used = true
	return nil
}

// pool returns the name of the pool for boxes with a key.
func (a *agents) pool(key string) string { return "sandbox-" + hash(key+string(a.engine.keys.pem)) }

// keep has a pool for boxes with a key, and deletes any other. It returns whether the
// controller keeps pods in it.
func (a *agents) keep(ctx context.Context, key string, like options.Box) (bool, error) {
	e := a.engine
	if !a.used {
		return false, nil
	}
	name := a.pool(key)
	for _, other := range a.pools.all(func(p *unstructured.Unstructured) bool { return p.GetName() != name && p.GetDeletionTimestamp() == nil }) {
		err := e.api.pools.Delete(ctx, other.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, failure(err, "delete a warm pool of other boxes")
		}
		a.pools.leave(other)
		a.forget(other.GetName())
	}
	if a.pools.at(name) == nil {
		a.forget(name) // it was deleted by hand
	}
	if err := a.describe(ctx, name, key, like); err != nil {
		return false, failure(err, "have agent-sandbox keep pods ready")
	}
	pool := a.pools.at(name)
	if pool == nil {
		return true, nil // it was deleted just now
	}
	noticed, left := a.noticed(pool)
	return !a.isAway() && (noticed || left > 0), nil
}

// noticed returns whether the controller has noticed a pool as it is, and how long it may
// go without that.
func (a *agents) noticed(pool *unstructured.Unstructured) (noticed bool, left time.Duration) {
	seen, _, _ := unstructured.NestedInt64(pool.Object, "status", "observedGeneration")
	return seen == pool.GetGeneration(), observation - a.pools.age(pool)
}

// describe writes down what a pool has, once in the life of this process: another one may
// have done so with other settings. The template belongs to the pool, and goes with it.
func (a *agents) describe(ctx context.Context, name, key string, like options.Box) error {
	a.mu.Lock()
	described := a.described[name]
	a.mu.Unlock()
	if described {
		return nil
	}
	force := metav1.ApplyOptions{FieldManager: "sandbox", Force: true}
	pool, err := a.engine.api.pools.Apply(ctx, name, agentObject("SandboxWarmPool", name, map[string]any{
		"replicas": int64(a.engine.config.Pool), "sandboxTemplateRef": map[string]any{"name": name},
	}), force)
	if err != nil {
		return err
	}
	a.pools.put(pool)
	template, err := a.template(name, key, like)
	if err != nil {
		return err
	}
	template.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: agentKinds, Kind: "SandboxWarmPool", Name: name, UID: pool.GetUID()}})
	if _, err := a.engine.api.templates.Apply(ctx, name, template, force); err != nil {
		return err
	}
	a.mu.Lock()
	a.described[name] = true
	a.mu.Unlock()
	return nil
}

// forget has a pool described anew before it is used again.
func (a *agents) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.described, name)
}

// template returns the template of the pods of a pool.
func (a *agents) template(name, key string, like options.Box) (*unstructured.Unstructured, error) {
	pod := a.engine.pod(name, like)
	pod.Labels[labelPool] = key
	box := &pod.Spec.Containers[0]
	box.Command = append(box.Command, "-own-key")
	box.Env = []corev1.EnvVar{{Name: "SANDBOX_POD_CLIENT_CA", Value: string(a.engine.keys.pem)}}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
	if err != nil {
		return nil, err
	}
	labels := map[string]any{}
	for name, value := range pod.Labels {
		labels[name] = value
	}
	return agentObject("SandboxTemplate", name, map[string]any{
		"networkPolicyManagement": "Unmanaged", // the policies of fence hold
		"podTemplate":             map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec},
	}), nil
}

// agentObject returns an object of agent-sandbox.
func agentObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": agentKinds, "kind": kind, "spec": spec}}
	o.SetName(name)
	o.SetLabels(map[string]string{labelSlot: name})
	return o
}

// isAway reports whether the controller counts as away.
func (a *agents) isAway() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.away)
}

// miss notes that the controller has left a claim without an answer. The pods that are
// kept ready are ours then.
func (a *agents) miss() {
	a.mu.Lock()
	a.away = time.Now().Add(absence)
	a.mu.Unlock()
	a.engine.news.tell()
}

// isPooled reports whether a pod is one that waits in a pool.
func isPooled(pod *corev1.Pod) bool {
	return pod.Labels[labelPool] != "" && pod.Labels[labelBox] == ""
}

// runs reports whether the init in a pod runs and can be reached.
func runs(pod *corev1.Pod) bool {
	return !over(pod) && container(pod).State.Running != nil && pod.Status.PodIP != ""
}
