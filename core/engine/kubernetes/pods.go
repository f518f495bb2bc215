package kubernetes

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"

	"sandbox/core"
	"sandbox/core/options"
)

// pods is what this process knows of the pods of boxes: a copy that a watch keeps up to
// date, and into which this process puts what it changes itself, so that it sees its own
// changes at once. It implements [cache.ReflectorStore].
type pods struct {
	client *gentype.ClientWithList[*corev1.Pod, *corev1.PodList]
	start  sync.Once

	mu      sync.Mutex
	byName  map[string]*corev1.Pod  // nobody changes these
	since   map[types.UID]time.Time // when this process first saw each: clocks differ
	doomed  map[types.UID]bool      // what nobody could delete yet
	latest  *corev1.Pod             // the box that started last, or a spare made later: what the next box is likely to be
	whole   bool                    // all pods are here
	failed  error                   // of the last try to list or watch; nil once that works
	changed chan struct{}           // closed and made anew at each change
}

func newPods(client *gentype.ClientWithList[*corev1.Pod, *corev1.PodList]) *pods {
	return &pods{client: client, byName: map[string]*corev1.Pod{}, since: map[types.UID]time.Time{}, doomed: map[types.UID]bool{}, changed: make(chan struct{})}
}

// selector selects the pods of this engine: boxes, and spares.
const selector = labelSlot

// follow keeps the copy up to date until ctx ends.
func (p *pods) follow(ctx context.Context) {
	mirror(ctx, p.client, func(o *metav1.ListOptions) { o.LabelSelector = selector }, &corev1.Pod{}, p, p.note)
}

// note notes how a request went.
func (p *pods) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = err
	p.tell()
}

// tell wakes all who wait for a change. p.mu is held.
func (p *pods) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wake is tell for what pods are shown with.
func (p *pods) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell()
}

// known returns whether all pods are here, and why they could not be had.
func (p *pods) known() (whole bool, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole, p.failed
}

// await waits until a pod is as until wants it, or has gone, which is nil.
func (p *pods) await(ctx context.Context, name string, until func(*corev1.Pod) (bool, error)) (*corev1.Pod, error) {
	for {
		p.mu.Lock()
		pod, changed := p.byName[name], p.changed
		p.mu.Unlock()
		if pod == nil {
			return nil, nil
		}
		if done, err := until(pod); done || err != nil {
			return pod, err
		}
		select {
		case <-ctx.Done():
			return pod, ctx.Err()
		case <-changed:
		}
	}
}

// all returns the pods that want returns true for.
func (p *pods) all(want func(*corev1.Pod) bool) (found []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range p.byName {
		if want(pod) {
			found = append(found, pod)
		}
	}
	return found
}

// ofBox returns the pod of a box, or nil. One that is being deleted has no box any more.
func (p *pods) ofBox(id string) *corev1.Pod {
	found := p.all(func(pod *corev1.Pod) bool { return pod.Labels[labelBox] == id && isBox(pod) })
	if len(found) == 0 {
		return nil
	}
	// Two programs that were asked for the same id at once: all of them see the first.
	return slices.MinFunc(found, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

// put takes in a pod as the API server has answered it.
func (p *pods) put(pod *corev1.Pod) {
	pod.ManagedFields = nil // half of a pod's bytes, and of no use here
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.byName[pod.Name]; before == nil || before.UID != pod.UID || version(before) < version(pod) {
		p.see(before, pod)
		p.byName[pod.Name] = pod
		p.tell()
	}
}

// see notes what is new about a pod: since when it is there, and that it shows what the
// next box is likely to be. All programs on a namespace see the same. p.mu is held.
func (p *pods) see(before, pod *corev1.Pod) {
	if before == nil || before.UID != pod.UID {
		before = &corev1.Pod{}
		p.since[pod.UID] = time.Now()
	}
	if shows(pod) && (!shows(before) || before.Labels[labelBox] != pod.Labels[labelBox]) && (p.latest == nil || version(p.latest) < version(pod)) {
		p.latest = pod
	}
}

// shows reports whether a pod shows that boxes of its kind can be made of spares.
func shows(pod *corev1.Pod) bool {
	return pod.Labels[labelSpare] != "" || pod.Labels[labelBox] != "" && !hasDisk(pod) && container(pod).State.Running != nil
}

// likely returns the options of the pod that shows what the next box is likely to be.
func (p *pods) likely() (options.Box, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var rec core.Record
	if p.latest == nil || json.Unmarshal([]byte(p.latest.Annotations[annotationRecord]), &rec) != nil {
		return rec.Options, false
	}
	return rec.Options, true
}

// age returns for how long this process has seen a pod.
func (p *pods) age(pod *corev1.Pod) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.since[pod.UID])
}

// drop forgets a pod that the API server has deleted.
func (p *pods) drop(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.byName[pod.Name]; now != nil && now.UID == pod.UID {
		delete(p.byName, pod.Name)
		delete(p.since, pod.UID)
		delete(p.doomed, pod.UID)
		p.tell()
	}
}

// version returns the version of an object, which grows with each change of it:
// Kubernetes promises so since 1.35.
func version(o metav1.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return n
}

// Add implements [cache.ReflectorStore].
func (p *pods) Add(o any) error { return p.Update(o) }

// Update implements [cache.ReflectorStore].
func (p *pods) Update(o any) error {
	if pod, ok := o.(*corev1.Pod); ok {
		p.put(pod)
	}
	return nil
}

// Delete implements [cache.ReflectorStore].
func (p *pods) Delete(o any) error {
	if pod, ok := o.(*corev1.Pod); ok {
		p.drop(pod)
	}
	return nil
}

// Replace implements [cache.ReflectorStore]. What this process made while the list was
// on its way is in a later version, and stays.
func (p *pods) Replace(list []any, at string) error {
	listed := map[string]*corev1.Pod{}
	for _, o := range list {
		if pod, ok := o.(*corev1.Pod); ok {
			pod.ManagedFields = nil
			listed[pod.Name] = pod
		}
	}
	then, _ := strconv.ParseUint(at, 10, 64)
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, pod := range p.byName {
		if version(pod) > then {
			listed[name] = pod
		}
	}
	since := p.since
	p.since = map[types.UID]time.Time{}
	for name, pod := range listed {
		p.see(p.byName[name], pod)
		if at, ok := since[pod.UID]; ok {
			p.since[pod.UID] = at
		}
	}
	p.byName, p.whole, p.failed = listed, true, nil
	p.tell()
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*pods) Resync() error { return nil }

// named returns the pod of a name, or nil.
func (p *pods) named(name string) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

// changes returns a channel that is closed at the next change.
func (p *pods) changes() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// lost returns why this process does not see changes now, or nil.
func (p *pods) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// condemn notes that a pod is to be deleted as soon as that can be done.
func (p *pods) condemn(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed[pod.UID] = true
	p.tell()
}

// condemned returns the pods that are to be deleted.
func (p *pods) condemned() []*corev1.Pod {
	return p.all(func(pod *corev1.Pod) bool { return p.doomed[pod.UID] && pod.DeletionTimestamp == nil })
}

// leave notes that a pod is being deleted, before the watch tells so.
func (p *pods) leave(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.byName[pod.Name]
	if now == nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
		return
	}
	leaving, at := now.DeepCopy(), metav1.Now()
	leaving.DeletionTimestamp = &at
	p.byName[pod.Name] = leaving
	p.tell()
}
