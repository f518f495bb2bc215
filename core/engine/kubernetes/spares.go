package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sandbox/core"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// spares keeps pods ready for boxes like the last one that was asked for. All programs
// on a namespace share them.
type spares struct {
	engine *Engine
	mu     sync.Mutex
	last   *options.Box // what the next box is expected to be like; nil for unknown
}

// hash returns a short name of a text that an object can have.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// key returns the label of the spares for boxes with these options, or "" where no
// spare will do.
func key(o options.Box) string {
	if o.Hostname != "" {
		return ""
	}
	text, _ := json.Marshal(kindOf(o)) // of members that JSON has
	return hash(string(text))
}

// claim makes a box of a spare, and returns its pod; nil if there is none. Each spare
// becomes one box: the API server takes only one change of each version of a pod.
func (s *spares) claim(ctx context.Context, rec core.Record) (*corev1.Pod, error) {
	e := s.engine
	want := key(rec.Options)
	if want == "" || e.config.Pool == 0 {
		return nil, nil
	}
	ready := e.pods.all(func(p *corev1.Pod) bool {
		return p.Labels[labelSpare] == want && p.DeletionTimestamp == nil && !over(p) && container(p).State.Running != nil
	})
	slices.SortFunc(ready, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, pod := range ready {
		spec := map[string]any{}
		if ttl := rec.Options.TTLSeconds; ttl > 0 && pod.Status.StartTime != nil {
			spec["activeDeadlineSeconds"] = int64(time.Since(pod.Status.StartTime.Time)/time.Second) + int64(ttl) + int64(deadlineSlack/time.Second)
		}
		started := time.Now().UTC()
		rec.StartedAt = &started
		err := e.patch(ctx, pod, rec, map[string]any{labelSpare: nil, labelBox: rec.ID}, spec)
		switch {
		case err == nil:
			return e.pods.named(pod.Name), nil
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			continue // another program was faster
		}
		return nil, failure(err, "make a box of a pod that is ready")
	}
	return nil, nil
}

// want has spares made for boxes like this one from now on.
func (s *spares) want(o options.Box) {
	if s.engine.config.Pool == 0 || key(o) == "" {
		return
	}
	s.mu.Lock()
	s.last = &o
	s.mu.Unlock()
	s.engine.pods.nudge()
}

// fill makes a spare if there are too few, and deletes one of another kind if there are
// too many. It returns whether it has done something, and there may be more to do.
func (s *spares) fill(ctx context.Context) (bool, error) {
	e := s.engine
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last == nil {
		return false, nil
	}
	wanted, have := key(*last), 0
	for _, pod := range e.pods.all(func(p *corev1.Pod) bool { return p.Labels[labelSpare] != "" && p.DeletionTimestamp == nil }) {
		if pod.Labels[labelSpare] != wanted || over(pod) {
			return true, e.delete(ctx, pod)
		}
		have++
	}
	if have >= e.config.Pool {
		return false, nil
	}
	o := options.Box{
		Image: last.Image, CPUs: last.CPUs, MemoryMiB: last.MemoryMiB, DiskSizeGB: last.DiskSizeGB,
		Network: last.Network, Processes: last.Processes, Seccomp: last.Seccomp,
	}
	pod := e.pod(podName(ids.Box.New()), o)
	pod.Labels[labelSpare] = wanted
	_, err := e.post(ctx, pod)
	return true, failure(err, "make a pod ready")
}
