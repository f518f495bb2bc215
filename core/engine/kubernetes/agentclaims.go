package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/core"
)

// claimName returns the name of the SandboxClaim of a box. A Sandbox that is made for the
// claim alone, and its pod, have it too: so it is not that of the box's own pod.
func claimName(id string) string { return podName(id) + "-claim" }

// sandboxOf returns the name of the Sandbox that a claim has got, which is that of its pod,
// or "".
func sandboxOf(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "status", "sandbox", "name")
	return name
}

// claim makes a box of a pod of a pool, and returns its pod; nil if none is to be had in
// time. The controller gives each Sandbox to one claim, and each box has a claim of its
// own: see take, too.
func (a *agents) claim(ctx context.Context, rec core.Record, key string) (*corev1.Pod, error) {
	e := a.engine
	if !a.used || !a.begin(key) {
		return nil, nil
	}
	defer a.end(key)
	name := claimName(rec.ID)
	claim := agentObject("SandboxClaim", name, map[string]any{"warmPoolRef": map[string]any{"name": a.pool(key)}})
	claim.SetLabels(map[string]string{labelSlot: name, labelBox: rec.ID})
	claim, err := e.api.claims.Create(ctx, claim, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) { // another program makes the same box, or the kinds have gone
		return nil, nil
	}
	if err != nil {
		return nil, failure(err, "claim a pod that is ready")
	}
	a.claims.put(claim)
	pod, err := a.assigned(ctx, name)
	if err == nil && pod != nil {
		pod, err = a.take(ctx, pod, rec)
	}
	if err == nil && pod != nil {
		return e.spares.fit(ctx, pod, rec.Options)
	}
	if ctx.Err() == nil && !apierrors.IsForbidden(err) {
		err = nil // a pod of our own does it, or tells why not
	}
	return nil, errors.Join(failure(err, "make a box of a pod that is ready"), a.discard(ctx, claim))
}

// begin reports whether the pool for boxes with a key has a pod for one more claim of this
// process, which goes on until end: the controller makes a new pod for one that comes too
// late, as we can do.
func (a *agents) begin(key string) bool {
	ready := a.engine.pods.all(func(p *corev1.Pod) bool {
		return isPooled(p) && p.Labels[labelPool] == key && p.DeletionTimestamp == nil && runs(p)
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.away) || a.claiming[key] >= len(ready) {
		return false
	}
	a.claiming[key]++
	return true
}

func (a *agents) end(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.claiming[key]--; a.claiming[key] == 0 {
		delete(a.claiming, key)
	}
}

// assigned waits until a claim has a pod that runs, and returns it; nil if the claim has
// gone or its pod can't run.
func (a *agents) assigned(ctx context.Context, name string) (pod *corev1.Pod, err error) {
	answered, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	sandbox := ""
	err = a.engine.news.await(answered, func() (bool, error) {
		claim := a.claims.at(name)
		if claim != nil {
			sandbox = sandboxOf(claim)
		}
		return claim == nil || sandbox != "", nil
	})
	if err != nil && ctx.Err() == nil {
		a.miss()
	}
	if err != nil || sandbox == "" {
		return nil, err
	}
	// It runs, unless another program's claim was faster: then it is a new one.
	running, cancel := context.WithTimeout(ctx, a.engine.config.scheduleTimeout())
	defer cancel()
	err = a.engine.news.await(running, func() (bool, error) {
		now := a.engine.pods.at(sandbox)
		if now == nil {
			return a.claims.at(name) == nil, nil
		}
		if runs(now) {
			pod = now
			return true, nil
		}
		reason, _, _ := problem(now)
		return reason != "" || over(now) || now.DeletionTimestamp != nil, nil
	})
	return pod, err
}

// take makes the pod of a claim that of its box. The controller changes the pod at the same
// time, so its version does not matter: the box is the field manager of its label, and so
// another one's gets a conflict.
func (a *agents) take(ctx context.Context, pod *corev1.Pod, rec core.Record) (*corev1.Pod, error) {
	e := a.engine
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	vouched, err := a.vouch(ctx, pod)
	if err != nil {
		return nil, err
	}
	started := time.Now().UTC()
	rec.StartedAt = &started
	change := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
		"name": pod.Name, "uid": pod.UID, "labels": map[string]string{labelBox: rec.ID},
		"annotations": map[string]string{annotationRecord: encode(rec), annotationCertificate: vouched},
	}}
	if deadline := e.deadline(pod, rec.Options); deadline > 0 {
		change["spec"] = map[string]any{"activeDeadlineSeconds": deadline}
	}
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	taken, err := e.api.pods.Patch(ctx, pod.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: rec.ID})
	if err != nil {
		return nil, err
	}
	e.pods.put(taken)
	return taken, nil
}

// discard deletes a claim that is of no use.
func (a *agents) discard(ctx context.Context, claim *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if now := a.claims.at(claim.GetName()); now != nil {
		claim = now
	}
	return a.delete(ctx, claim.GetName(), sandboxOf(claim))
}

// release deletes what a pod of a pool belongs to: if it alone were deleted, the
// controller would make another one.
func (a *agents) release(ctx context.Context, pod *corev1.Pod) error {
	if pod.Labels[labelPool] == "" || pod.Labels[labelBox] == "" {
		return nil
	}
	return a.delete(ctx, claimName(pod.Labels[labelBox]), pod.Name)
}

// delete deletes a claim, and its Sandbox if it has one.
func (a *agents) delete(ctx context.Context, claim, sandbox string) error {
	for _, o := range []struct {
		kind custom
		name string
	}{{a.engine.api.claims, claim}, {a.engine.api.sandboxes, sandbox}} {
		if o.name == "" {
			continue
		}
		if err := o.kind.Delete(ctx, o.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return failure(err, "delete the claim of a box")
		}
	}
	return nil
}

// tend deletes claims without a box: the server that made one has died, or the box's pod
// was deleted and the controller has made another. It returns in how long there is
// something to be looked at.
func (a *agents) tend(ctx context.Context) (next time.Duration, err error) {
	next = forever
	if !a.used {
		return next, nil
	}
	a.learn()
	whole := func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() == nil }
	for _, pool := range a.pools.all(whole) {
		if noticed, left := a.noticed(pool); !noticed && left > 0 {
			next = min(next, left)
		}
	}
	for _, claim := range a.claims.all(whole) {
		if a.engine.pods.ofBox(claim.GetLabels()[labelBox]) != nil {
			continue
		}
		if left := 2*a.engine.config.scheduleTimeout() - a.claims.age(claim); left > 0 {
			next = min(next, left)
			continue
		}
		err = errors.Join(err, a.delete(ctx, claim.GetName(), sandboxOf(claim)))
	}
	return next, err
}
