package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// Get returns one box; see [core.Boxes].
func (e *Engine) Get(ctx context.Context, id string) (core.Record, error) {
	rec, _, err := e.find(ctx, id)
	return rec, err
}

// find returns a box and its pod, which is nil while a box with a disk has none. Errors: BoxNotFound, those of begin.
func (e *Engine) find(ctx context.Context, id string) (core.Record, *corev1.Pod, error) {
	if !ids.Box.Valid(id) {
		return core.Record{}, nil, errNoBox(id)
	}
	if err := e.begin(ctx); err != nil {
		return core.Record{}, nil, err
	}
	if pod := e.pods.ofBox(id); pod != nil {
		return e.record(pod), pod, nil
	}
	if disk := e.disks.ofBox(id); disk != nil {
		return storedOf(disk), nil, nil
	}
	return core.Record{}, nil, errNoBox(id)
}

func errNoBox(id string) error { return fault.New(fault.BoxNotFound, "no box %.60q", id) }

// List returns all boxes, newest first; see [core.Boxes].
func (e *Engine) List(ctx context.Context) ([]core.Record, error) {
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	recs, up := []core.Record{}, map[string]bool{}
	for _, pod := range e.pods.all(isBox) {
		recs = append(recs, e.record(pod))
		up[pod.Labels[labelBox]] = true
	}
	for _, disk := range e.disks.all(func(d *corev1.PersistentVolumeClaim) bool { return isStored(d) && !up[d.Labels[labelBox]] }) {
		recs = append(recs, storedOf(disk))
	}
	slices.SortFunc(recs, func(a, b core.Record) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return recs, nil
}

// isBox reports whether a pod is a box. One that is being deleted is none any more, unless
// its node is lost: nobody ends it there, and it would stay unseen.
func isBox(pod *corev1.Pod) bool {
	return pod.Labels[labelBox] != "" && (pod.DeletionTimestamp == nil || nodeGone(pod) != "")
}

// Stop stops a box with a disk, or one with auto_remove, which removes it; see [core.Boxes].
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) (core.Record, error) {
	unlock, err := e.turns.take(ctx, id)
	if err != nil {
		return core.Record{}, err
	}
	defer unlock()
	rec, pod, err := e.find(ctx, id)
	if err != nil {
		return rec, err
	}
	if !rec.Status.Up() {
		return rec, fault.New(fault.InvalidState, "box %s is %s already", id, rec.Status)
	}
	if !rec.Options.AutoRemove && e.diskOf(pod) == nil {
		return rec, errDisk("stop")
	}
	rec, err = e.end(ctx, pod, rec, grace, string(api.Stopped))
	if err != nil {
		return rec, err
	}
	return rec, e.settle(context.WithoutCancel(ctx), pod, rec)
}

// end has the init of a box end its processes, save its disk and end itself. It returns
// the record of the box then. If the disk can't be saved, the box goes on.
func (e *Engine) end(ctx context.Context, pod *corev1.Pod, rec core.Record, grace time.Duration, reason string) (core.Record, error) {
	conn, err := e.reach(ctx, pod, rec, true)
	if err != nil {
		return rec, e.Explain(rec.ID, err)
	}
	defer conn.Close()
	err = conn.Ask(ctx, wire.TypeStop, wire.Stop{GraceMS: grace.Milliseconds()}, nil)
	cut := wire.CutOff(err)
	if err != nil && !cut {
		return rec, e.Explain(rec.ID, errors.Join(ctx.Err(), err))
	}
	if cut && hasDisk(pod) { // whether that was saved, its pod tells
		now, err := e.pods.await(ctx, pod.Name, func(p *corev1.Pod) (bool, error) { return p.UID != pod.UID || over(p), nil })
		if err != nil {
			return rec, failure(err, "wait for the end of the box")
		}
		if now != nil && now.UID == pod.UID {
			return recordOf(now), nil
		}
	}
	stop(&rec, time.Now().UTC(), reason)
	return rec, nil
}

func errDisk(what string) error {
	return fault.New(fault.Unsupported, "this server can't %s a box: its disk would go with its pod, as the server was started without --disk-class (kubernetes.disk_class); remove the box, and make another one", what)
}

// Remove deletes the disk and the pod of a box; see [core.Boxes].
func (e *Engine) Remove(ctx context.Context, id string, force bool) error {
	rec, pod, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	if rec.Status.Up() && !force {
		return fault.New(fault.InvalidState, "box %s is %s: stop it first, or remove it by force", id, rec.Status)
	}
	if err := e.forgetDisk(ctx, e.disks.ofBox(id)); err != nil || pod == nil {
		return err
	}
	return e.delete(ctx, pod)
}

// delete deletes a pod, and with it all that belongs to it.
func (e *Engine) delete(ctx context.Context, pod *corev1.Pod) error {
	if err := e.unpublish(ctx, pod); err != nil {
		return err
	}
	soon := int64(1) // the least that lets the kubelet, and not the API server, remove it
	if nodeGone(pod) != "" {
		soon = 0 // there is no kubelet
	}
	if err := e.agents.release(ctx, pod); err != nil {
		return err
	}
	only := &metav1.Preconditions{UID: &pod.UID}
	if pod.Labels[labelSpare] != "" {
		only.ResourceVersion = &pod.ResourceVersion // and not if it has become a box
	}
	err := e.api.pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &soon, Preconditions: only})
	if only.ResourceVersion != nil && apierrors.IsConflict(err) { // it has changed
		var now *corev1.Pod
		now, err = e.reread(ctx, pod.Name)
		switch {
		case err != nil: // that it has gone, or why it can't be read
		case now.UID == pod.UID && now.Labels[labelSpare] != "":
			return e.delete(ctx, now)
		default:
			return nil // it is a box, which goes on
		}
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return failure(err, "delete the pod of a box")
	}
	e.pods.leave(pod)
	e.lines.forget(pod)
	return nil
}

// discard deletes a pod that is of no use. While the API server does not take that, tend
// tries again.
func (e *Engine) discard(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	err := e.delete(ctx, pod)
	if err != nil {
		e.pods.condemn(pod)
	}
	return err
}

// discardTimeout bounds how much later a create fails because it also has to delete.
const discardTimeout = 10 * time.Second

// Update changes options of a box; see [core.Boxes].
func (e *Engine) Update(ctx context.Context, id string, u options.Update) (core.Record, error) {
	for {
		rec, pod, err := e.find(ctx, id)
		if err != nil {
			return rec, err
		}
		if err := e.refuse(u.Apply(options.Box{})); err != nil {
			return rec, err
		}
		rec.Options = u.Apply(rec.Options)
		now := time.Now().UTC()
		rec.UpdatedAt = now
		if u.TTLSeconds != nil {
			if err := retime(&rec, pod, *u.TTLSeconds, now); err != nil {
				return rec, err
			}
		}
		if pod == nil {
			disk := e.disks.ofBox(id)
			return rec, e.keep(ctx, disk, rec, lifeOf(disk))
		}
		err = e.patch(ctx, pod, asked(rec, pod), nil, nil)
		if !apierrors.IsConflict(err) {
			return rec, errors.Join(failure(err, "change the record of a box"), e.keep(ctx, e.diskOf(pod), asked(rec, pod), lifeOf(pod)))
		}
		if _, err := e.reread(ctx, pod.Name); err != nil {
			return rec, failure(err, "read the record of a box")
		}
	}
}

// retime gives a box another time. That of a box which was made with one can only become
// shorter: the kubelet's deadline can't be moved away.
func retime(rec *core.Record, pod *corev1.Pod, seconds int, now time.Time) error {
	rec.Options.TTLSeconds, rec.ExpiresAt = seconds, nil
	if seconds > 0 {
		at := now.Add(time.Duration(seconds) * time.Second)
		rec.ExpiresAt = &at
	}
	if pod == nil { // it is stopped
		rec.ExpiresAt = nil
		return nil
	}
	deadline, started := pod.Spec.ActiveDeadlineSeconds, pod.Status.StartTime
	if deadline == nil || started == nil {
		return nil
	}
	if rec.ExpiresAt == nil || rec.ExpiresAt.After(started.Add(time.Duration(*deadline)*time.Second-deadlineSlack)) {
		return fault.New(fault.Unsupported, "the time of a box of a cluster that was made with one can only become shorter")
	}
	return nil
}

// patch writes the record of a box into its pod, unless that has changed since: the
// error is a conflict then. A label of nil is removed.
func (e *Engine) patch(ctx context.Context, pod *corev1.Pod, rec core.Record, labels map[string]any, spec map[string]any) error {
	meta := map[string]any{"resourceVersion": pod.ResourceVersion, "annotations": map[string]string{annotationRecord: encode(rec)}}
	if labels != nil {
		meta["labels"] = labels
	}
	change := map[string]any{"metadata": meta}
	if len(spec) > 0 {
		change["spec"] = spec
	}
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	changed, err := e.api.pods.Patch(ctx, pod.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil {
		e.pods.put(changed)
	}
	return err
}
