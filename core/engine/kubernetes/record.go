package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// The labels and annotations of what belongs to boxes.
const (
	labelSlot    = "sandbox/slot"    // on all pods and what belongs to them: the pod's name
	labelBox     = "sandbox/box"     // the id of the box that a pod is
	labelSpare   = "sandbox/spare"   // what a spare is for, until it is a box
	labelPool    = "sandbox/pool"    // on the pods of a SandboxWarmPool: what they are for
	labelNetwork = "sandbox/network" // which NetworkPolicy holds

	annotationRecord      = "sandbox/record"
	annotationCertificate = "sandbox/certificate" // of the key that the init of a pod has made itself
)

// encode returns the record for the annotation of its pod.
func encode(rec core.Record) string {
	text, _ := json.Marshal(rec) // of members that JSON has
	return string(text)
}

// recordOf returns the record of a box: what was written about it, and what the cluster
// says of its pod now.
func recordOf(pod *corev1.Pod) core.Record {
	rec, damaged := annotated(pod, "pod")
	if damaged {
		return rec
	}
	c := container(pod)
	if c.ImageID != "" {
		rec.ImageID = c.ImageID
	}
	switch {
	case over(pod):
		ended(&rec, pod, c)
	case c.State.Running != nil && rec.Status != api.Stopped:
		started := c.State.Running.StartedAt.UTC()
		if rec.StartedAt != nil && rec.StartedAt.After(started) {
			started = *rec.StartedAt // it was a spare before
		}
		rec.Status, rec.StartedAt = api.Running, &started
		if ttl := rec.Options.TTLSeconds; ttl > 0 && rec.ExpiresAt == nil && rec.Reason == "" {
			at := started.Add(time.Duration(ttl)*time.Second + time.Second) // the kubelet tells whole seconds
			rec.ExpiresAt = &at
		}
	}
	return rec
}

// annotated returns the record that was written about a box, and whether it is damaged:
// then it is that of a box which has failed.
func annotated(o metav1.Object, what string) (rec core.Record, damaged bool) {
	id, made := o.GetLabels()[labelBox], o.GetCreationTimestamp().UTC()
	rec = core.Record{CreatedAt: made, UpdatedAt: made} // the annotation must tell the id, whatever else it holds
	if err := json.Unmarshal([]byte(o.GetAnnotations()[annotationRecord]), &rec); err != nil || rec.ID != id {
		rec = core.Record{ID: id, CreatedAt: made}
		fail(&rec, made, "record_damaged", fault.New(fault.Storage, "the annotation %s of %s %s does not hold the record of the box: remove the box", annotationRecord, what, o.GetName()))
		return rec, true
	}
	return rec, false
}

// container returns the state of the container that a box is.
func container(pod *corev1.Pod) corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == boxContainer })
	if i < 0 {
		return corev1.ContainerStatus{}
	}
	return pod.Status.ContainerStatuses[i]
}

// over reports whether nothing runs in a pod any more, and never will.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || nodeGone(pod) != ""
}

// nodeGone returns why a pod's node is lost, or "".
func nodeGone(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason != corev1.PodReasonTerminationByKubelet && c.Reason != corev1.PodReasonPreemptionByScheduler {
			return c.Message
		}
	}
	return ""
}

// ended says how a box has ended.
func ended(rec *core.Record, pod *corev1.Pod, c corev1.ContainerStatus) {
	at := time.Now().UTC()
	t := c.State.Terminated
	if t != nil {
		at = t.FinishedAt.UTC()
	}
	said := ""
	if t != nil {
		said = t.Message
	}
	if rec.StartedAt == nil && t != nil && !t.StartedAt.IsZero() {
		started := t.StartedAt.UTC()
		rec.StartedAt = &started
	}
	lost := ""
	if hasDisk(pod) && said != wire.EndedSaved {
		lost = "; what has changed on its disk since the last stop is lost"
	}
	path := unusable(pod)
	switch {
	case path != nil:
		fail(rec, at, reasonUnstarted, path)
	case t != nil && t.Reason == "StartError": // so runtimes and the kubelet call it
		fail(rec, at, reasonUnstarted, unstarted(said))
	case strings.HasPrefix(said, wire.EndedUnrestored):
		fail(rec, at, reasonDamaged, fault.New(fault.Storage, "%s", said))
	case strings.HasPrefix(said, wire.EndedUnsaved):
		fail(rec, at, "disk_unsaved", fault.New(fault.Storage, "%s%s", said, lost))
	case pod.Status.Reason == "DeadlineExceeded":
		stop(rec, at, reasonExpired)
	case rec.Reason == reasonExpired, rec.Reason == reasonIdle:
		stop(rec, at, rec.Reason)
	case pod.Status.Reason == "Evicted":
		fail(rec, at, "evicted", fault.New(fault.ResourceExhausted, "the node has evicted the box: %s%s", pod.Status.Message, lost))
	case nodeGone(pod) != "":
		fail(rec, at, "node_lost", fault.New(fault.Engine, "the node of the box has gone: %s%s", nodeGone(pod), lost))
	case t != nil && t.Reason == "OOMKilled":
		fail(rec, at, "oom_killed", fault.New(fault.ResourceExhausted, "the box had no memory left for its init: give it more than %d MiB%s", rec.Options.MemoryMiB, lost))
	case rec.ExpiresAt != nil && !at.Before(*rec.ExpiresAt):
		stop(rec, at, reasonExpired) // the kubelet has told its deadline or not, see below
	case said == wire.EndedOutside, said == wire.EndedSaved:
		// An init that ends at once is faster than the kubelet, which then tells no reason.
		fail(rec, at, "evicted", fault.New(fault.ResourceExhausted, "the node has ended the box, as it does where a box or the node has no disk or memory left: see `kubectl describe pod %s`%s%s", pod.Name, sizeOf(rec.Options), lost))
	case pod.Status.Phase == corev1.PodSucceeded:
		stop(rec, at, string(api.Stopped))
	default:
		fail(rec, at, "init_died", fault.New(fault.Engine, "the box's init has ended: %.300s%s", cmp.Or(said, pod.Status.Message), lost))
	}
}

// Reasons why a box is stopped or failed.
const (
	reasonExpired   = "expired"
	reasonIdle      = "idle"         // nobody has used it for its idle_seconds
	reasonDamaged   = "disk_damaged" // its disk can't be put back
	reasonUnstarted = "not_started"  // its node has not started it
)

// unstarted returns the failure of a box whose process 1 was never there, as the runtime of
// the node tells it. Names of the node's files are left out.
func unstarted(said string) error {
	_, at, mounts := strings.Cut(said, " to rootfs at ")
	switch {
	case strings.Contains(said, "MOUNT_ATTR_IDMAP"):
		return fault.New(fault.Unsupported, "a volume of the box is on a file system of the node that can't be id-mapped, as pods with user namespaces need it (kubernetes.host_users)")
	case mounts:
		at, _, _ = strings.Cut(at, ":")
		return fault.New(fault.InvalidArgument, "the volume at guest_path %s can't be mounted there: one is a directory and the other is not, or a link of the image leads where no volume can be", at)
	}
	return fault.New(fault.Engine, "the box can't be started: %.500s", said)
}

func sizeOf(o options.Box) string {
	if o.DiskSizeGB == 0 {
		return ""
	}
	return fmt.Sprintf("; its disk may hold %d GiB", o.DiskSizeGB)
}

func stop(rec *core.Record, at time.Time, reason string) {
	rec.Status, rec.Reason, rec.StoppedAt, rec.UpdatedAt, rec.ExpiresAt, rec.PID = api.Stopped, reason, &at, at, nil, 0
}

func fail(rec *core.Record, at time.Time, reason string, err error) {
	stop(rec, at, reason)
	f := fault.Of(err)
	rec.Status, rec.Error = api.Failed, &api.Failure{Code: f.Kind, Message: f.Message}
}
