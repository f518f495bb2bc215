package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/core"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// spares keeps pods ready for boxes like the last one that was asked for, by agents where
// the cluster has agent-sandbox. All programs on a namespace share them, and see the same
// pod as the last.
type spares struct {
	engine  *Engine
	resizes bool // the cluster gives a pod that runs other limits; set before there is any claim
	mu      sync.Mutex
	tried   map[string]string // the version of each spare that a claim has tried to take
}

// hash returns a short name of a text that an object can have.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// key returns the label of the spares for boxes with these options, or "" where no
// spare will do.
func (s *spares) key(o options.Box) string {
	if o.Hostname != "" || len(o.Ports) > 0 || len(o.Volumes) > 0 {
		return ""
	}
	k := kindOf(o)
	if s.resizes {
		k.CPUs, k.Memory = 0, 0
	}
	text, _ := json.Marshal(k) // of members that JSON has
	return hash(string(text))
}

// claimTries bounds how often a claim comes too late before it makes a pod of its own.
const claimTries = 3

// claim makes a box of a spare, and returns its pod; nil if there is none. Each spare
// becomes one box: the API server takes only one change of each version of a pod.
func (s *spares) claim(ctx context.Context, rec core.Record) (*corev1.Pod, error) {
	e := s.engine
	want := s.key(rec.Options)
	if want == "" || e.config.Pool == 0 {
		return nil, nil
	}
	for range claimTries {
		pod := s.reserve(want, rec.Options)
		if pod == nil {
			return e.agents.claim(ctx, rec, want)
		}
		spec := map[string]any{}
		if deadline := e.deadline(pod, rec.Options); deadline > 0 {
			spec["activeDeadlineSeconds"] = deadline
		}
		started := time.Now().UTC()
		rec.StartedAt = &started
		err := e.patch(ctx, pod, rec, map[string]any{labelSpare: nil, labelBox: rec.ID}, spec)
		switch {
		case err == nil:
			return s.fit(ctx, e.pods.at(pod.Name), rec.Options)
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			continue // another program was faster
		}
		s.release(pod)
		return nil, failure(err, "make a box of a pod that is ready")
	}
	return nil, nil
}

// deadline returns when the kubelet ends a pod that becomes a box, in seconds; 0 for never.
// It counts from the start of the pod. The clocks may differ.
func (e *Engine) deadline(pod *corev1.Pod, o options.Box) int64 {
	if o.TTLSeconds == 0 || pod.Status.StartTime == nil {
		return 0
	}
	age := max(time.Since(pod.Status.StartTime.Time), e.pods.age(pod))
	return int64((age + time.Duration(o.TTLSeconds)*time.Second + deadlineSlack) / time.Second)
}

// fit gives a claimed pod the limits of its box, and waits until it has them. It returns
// nil if the node does not give them: another one may.
func (s *spares) fit(ctx context.Context, pod *corev1.Pod, o options.Box) (*corev1.Pod, error) {
	e := s.engine
	if pod == nil || fits(pod.Spec.Containers[0].Resources.Limits, o) {
		return pod, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fitTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": boxContainer, "resources": resources(o)}}}})
	if err != nil {
		return nil, err
	}
	var now *corev1.Pod
	fitted := false
	changed, err := e.api.pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "resize")
	if err == nil {
		e.pods.put(changed)
		now, err = e.pods.await(ctx, pod.Name, func(p *corev1.Pod) (bool, error) {
			has := container(p).Resources
			fitted = has != nil && fits(has.Limits, o)
			return fitted || over(p) || slices.ContainsFunc(p.Status.Conditions, refused), nil
		})
	}
	if fitted {
		return now, nil
	}
	tooMuch := apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "cannot patch") // for the node, or the quota
	if tooMuch || apierrors.IsInvalid(err) || errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return nil, errors.Join(failure(err, "give a pod that is ready the size of its box"), e.discard(ctx, pod))
}

// fitTimeout bounds how long a node may take to change the limits of a pod. Then a new
// pod is faster.
const fitTimeout = 5 * time.Second

func fits(limits corev1.ResourceList, o options.Box) bool {
	want := resources(o).Limits
	return limits.Cpu().Cmp(*want.Cpu()) == 0 && limits.Memory().Cmp(*want.Memory()) == 0
}

// refused reports whether a node says that it has not what a pod shall have.
func refused(c corev1.PodCondition) bool {
	return c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue
}

// resources returns the names of what the cluster has at a path of its API.
func (e *Engine) resources(ctx context.Context, path string) (map[string]bool, error) {
	body, err := e.api.core.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(silent(ctx)).Raw()
	if err != nil {
		return nil, err
	}
	var kinds metav1.APIResourceList
	if err := json.Unmarshal(body, &kinds); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, r := range kinds.APIResources {
		names[r.Name] = true
	}
	return names, nil
}

// discover asks what the cluster can do for pods that are kept ready. Errors: those of failure.
func (s *spares) discover(ctx context.Context) error {
	if s.engine.config.Pool == 0 {
		return nil
	}
	has, err := s.engine.resources(ctx, "/api/v1")
	if err != nil {
		return failure(err, "ask what the cluster can do")
	}
	s.resizes = has["pods/resize"]
	return s.engine.agents.discover(ctx)
}

// reserve returns a spare that no other claim of this process tries to take, or nil: one of
// the size of the box, if there is any. Which of them is chance, so that two programs
// seldom want the same one.
func (s *spares) reserve(want string, o options.Box) *corev1.Pod {
	pods := s.engine.pods
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tried, func(name, version string) bool {
		pod := pods.at(name)
		return pod == nil || pod.ResourceVersion != version
	})
	ready := pods.all(func(p *corev1.Pod) bool {
		return p.Labels[labelSpare] == want && p.DeletionTimestamp == nil && !over(p) && container(p).State.Running != nil && s.tried[p.Name] == ""
	})
	if len(ready) == 0 {
		return nil
	}
	if fit := slices.DeleteFunc(slices.Clone(ready), func(p *corev1.Pod) bool { return !fits(p.Spec.Containers[0].Resources.Limits, o) }); len(fit) > 0 {
		ready = fit
	}
	pod := ready[rand.IntN(len(ready))]
	s.tried[pod.Name] = pod.ResourceVersion
	return pod
}

// release gives a spare back that was not taken.
func (s *spares) release(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tried, pod.Name)
}

// fill makes a spare if there are too few and none is starting, and deletes one of another
// kind. It returns whether it has done something, and there may be more to do.
func (s *spares) fill(ctx context.Context) (bool, error) {
	e := s.engine
	last, known := e.pods.likely()
	wanted := s.key(last)
	if e.config.Pool == 0 || !known || wanted == "" {
		return false, nil
	}
	o := options.Box{
		Image: last.Image, CPUs: last.CPUs, MemoryMiB: last.MemoryMiB, DiskSizeGB: last.DiskSizeGB,
		Network: last.Network, Processes: last.Processes, Seccomp: last.Seccomp,
	}
	kept, failed := e.agents.keep(ctx, wanted, o)
	have, starting := 0, false
	for _, pod := range e.pods.all(func(p *corev1.Pod) bool { return p.Labels[labelSpare] != "" && p.DeletionTimestamp == nil }) {
		if pod.Labels[labelSpare] != wanted || over(pod) {
			return true, errors.Join(failed, e.delete(ctx, pod))
		}
		have++
		starting = starting || container(pod).State.Running == nil
	}
	if kept || have >= e.config.Pool || starting {
		return false, failed
	}
	pod := e.pod(podName(ids.Box.New()), o)
	pod.Labels[labelSpare] = wanted
	pod.Annotations = map[string]string{annotationRecord: encode(core.Record{Options: o})}
	pod, err := e.post(ctx, pod)
	if err != nil {
		return false, failure(err, "make a pod ready")
	}
	if err := e.give(ctx, pod); err != nil {
		return false, errors.Join(err, e.discard(ctx, pod))
	}
	return true, failed
}
