package kubernetes

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/core"
	"sandbox/core/options"
)

// pods is what this process knows of the pods of boxes, and of spares.
type pods struct {
	*copies[*corev1.Pod]

	// mu guards these, too.
	doomed map[types.UID]bool // what nobody could delete yet
	latest *corev1.Pod        // the box that started last, or a spare made later: what the next box is likely to be
}

func newPods(n *news) *pods {
	p := &pods{copies: newCopies(n, nameOf[*corev1.Pod]), doomed: map[types.UID]bool{}}
	p.seen = p.see
	return p
}

// await waits until a pod is as until wants it, or has gone, which is nil.
func (p *pods) await(ctx context.Context, name string, until func(*corev1.Pod) (bool, error)) (pod *corev1.Pod, err error) {
	err = p.news.await(ctx, func() (bool, error) {
		if pod = p.at(name); pod == nil {
			return true, nil
		}
		return until(pod)
	})
	return pod, err
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

// see notes that a pod shows what the next box is likely to be. All programs on a namespace
// see the same. p.mu is held.
func (p *pods) see(before, pod *corev1.Pod) {
	if before == nil {
		before = &corev1.Pod{}
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

// Delete implements [cache.ReflectorStore].
func (p *pods) Delete(o any) error {
	if pod, ok := o.(*corev1.Pod); ok {
		p.mu.Lock()
		delete(p.doomed, pod.UID)
		p.mu.Unlock()
	}
	return p.copies.Delete(o)
}

// condemn notes that a pod is to be deleted as soon as that can be done.
func (p *pods) condemn(pod *corev1.Pod) {
	p.mu.Lock()
	p.doomed[pod.UID] = true
	p.mu.Unlock()
	p.tell()
}

// condemned returns the pods that are to be deleted.
func (p *pods) condemned() []*corev1.Pod {
	return p.all(func(pod *corev1.Pod) bool { return p.doomed[pod.UID] && pod.DeletionTimestamp == nil })
}
