package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
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

// Create makes a box of a spare, or a new pod for it; see [core.Boxes].
func (e *Engine) Create(ctx context.Context, req core.CreateRequest) (core.Record, error) {
	if err := e.refuse(req.Options); err != nil {
		return core.Record{}, err
	}
	if err := e.begin(ctx); err != nil {
		return core.Record{}, err
	}
	pod, err := e.pods.ofBox(req.ID), error(nil)
	if disk := e.disks.ofBox(req.ID); pod == nil && disk != nil {
		if rec := storedOf(disk); rec.Status != api.Created {
			return rec, nil // it was made before, and is stopped
		}
	}
	made := pod == nil
	if made {
		if err := e.checkVolumes(ctx, req.Options.Volumes); err != nil {
			return core.Record{}, err
		}
		pod, made, err = e.make(ctx, req)
	}
	if err != nil {
		return core.Record{}, err
	}
	rec, err := e.up(ctx, pod)
	if err != nil && made {
		err = errors.Join(err, e.unmake(ctx, e.diskOf(pod), pod))
	}
	return rec, err
}

// unmake deletes a box that could not be made.
func (e *Engine) unmake(ctx context.Context, disk *corev1.PersistentVolumeClaim, pod *corev1.Pod) (err error) {
	if disk != nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
		defer cancel()
		err = e.forgetDisk(limited, disk)
	}
	if pod != nil {
		err = errors.Join(err, e.discard(ctx, pod))
	}
	return err
}

// make returns the pod of a box, and whether it is new: another program may make the
// same box at the same time.
func (e *Engine) make(ctx context.Context, req core.CreateRequest) (pod *corev1.Pod, made bool, err error) {
	now := time.Now().UTC()
	rec := core.Record{ID: req.ID, Options: req.Options, Status: api.Created, CreatedAt: now, UpdatedAt: now}
	if strings.Contains(req.Image.ID, "@") { // its command was read at its registry: the pod runs that one
		rec.ImageID = req.Image.ID
	}
	var disk *corev1.PersistentVolumeClaim
	if e.keeps(req.Options) {
		disk, err = e.provide(ctx, rec)
	} else {
		pod, err = e.spare(ctx, rec)
	}
	if err != nil {
		return nil, false, err
	}
	claimed := pod != nil
	for pod == nil {
		pod, err = e.post(ctx, e.boxPod(rec, disk, 1))
		if apierrors.IsAlreadyExists(err) {
			if pod, err = e.other(ctx, podName(req.ID)); pod != nil || err != nil {
				return pod, false, err
			}
			continue
		}
		if err != nil {
			return nil, false, errors.Join(failure(err, "create the pod of a box"), e.unmake(ctx, disk, nil))
		}
	}
	err = e.name(ctx, req.Options.Name, pod, disk)
	if err == nil {
		err = e.publish(ctx, pod, req.Options.Ports)
	}
	if err == nil && !claimed {
		err = e.give(ctx, pod)
	}
	if err != nil {
		return nil, false, errors.Join(err, e.unmake(ctx, disk, pod))
	}
	return pod, true, nil
}

// boxPod returns the pod of a box, for a life of it if it has a disk.
func (e *Engine) boxPod(rec core.Record, disk *corev1.PersistentVolumeClaim, life int) *corev1.Pod {
	o := rec.Options
	name := podName(rec.ID)
	if life > 1 { // the pod of the life before may not have gone yet
		name += "-" + strconv.Itoa(life)
	}
	pod := e.pod(name, o)
	if strings.Contains(rec.ImageID, "@") { // another image may have the name by now
		pod.Spec.Containers[0].Image = rec.ImageID
	}
	if disk != nil {
		e.attach(pod, disk, o, life)
	}
	e.mount(pod, o)
	pod.Spec.Hostname = podName(cmp.Or(o.Hostname, o.Name, rec.ID))
	become(pod, rec)
	if o.TTLSeconds > 0 {
		deadline := int64(o.TTLSeconds) + int64(deadlineSlack/time.Second)
		pod.Spec.ActiveDeadlineSeconds = &deadline
	}
	return pod
}

// post makes a pod, which waits for its keys.
func (e *Engine) post(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	made, err := e.api.pods.Create(ctx, pod, metav1.CreateOptions{})
	if err == nil {
		e.pods.put(made)
	}
	return made, err
}

// give gives a pod its keys. They come last: the kubelet waits for them, and so a pod
// whose maker has died in between never runs (see unfinished), and nothing is left that
// belongs to no pod.
func (e *Engine) give(ctx context.Context, pod *corev1.Pod) error {
	keys, err := e.keys.secret(pod)
	if err != nil {
		return err
	}
	_, err = e.api.secrets.Create(ctx, keys, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return failure(err, "give the pod of a box its keys")
}

// other returns a pod that another program has made, or nil once one that was being
// deleted has gone.
func (e *Engine) other(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := e.reread(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, failure(err, "look who makes the box")
	case pod.DeletionTimestamp == nil:
		return pod, nil
	}
	_, err = e.pods.await(ctx, pod.Name, func(now *corev1.Pod) (bool, error) { return now.UID != pod.UID, nil })
	return nil, failure(err, "wait until the box before has gone")
}

// reread reads a pod anew.
func (e *Engine) reread(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := e.api.pods.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		e.pods.put(pod)
	}
	return pod, err
}

// name takes a name for a box. A name is an object of the namespace, so that two
// programs can't give it to two boxes; it belongs to the disk of the box, or else to its
// pod, and goes with it.
func (e *Engine) name(ctx context.Context, name string, pod *corev1.Pod, disk *corev1.PersistentVolumeClaim) error {
	if name == "" {
		return nil
	}
	holder := owner(pod)
	if disk != nil {
		holder = ownerDisk(disk)
	}
	claim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "sandbox-name-" + hash(name), Labels: map[string]string{labelSlot: holder.Name}, OwnerReferences: []metav1.OwnerReference{holder},
	}, Data: map[string]string{"name": name}}
	for {
		_, err := e.api.names.Create(ctx, claim, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return failure(err, "take the name %s", name)
		}
		held, err := e.api.names.Get(ctx, claim.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // its box has just gone
		}
		if err != nil {
			return failure(err, "look who has the name %s", name)
		}
		if e.isHeld(held) {
			return fault.New(fault.AlreadyExists, "a box is called %s already: choose another name, or remove it", name)
		}
		// Its box is being deleted. The collector of the cluster takes a while.
		err = e.api.names.Delete(ctx, held.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &held.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return failure(err, "take over the name %s", name)
		}
	}
}

// isHeld reports whether the box is still there that has a name.
func (e *Engine) isHeld(name *corev1.ConfigMap) bool {
	slot := name.Labels[labelSlot]
	owned := func(o metav1.Object) bool {
		return o.GetDeletionTimestamp() == nil && slices.ContainsFunc(name.OwnerReferences, func(by metav1.OwnerReference) bool { return by.UID == o.GetUID() })
	}
	pod, disk := e.pods.at(slot), e.disks.at(slot)
	return pod != nil && owned(pod) || disk != nil && owned(disk)
}

// up waits until a box runs and its init answers, and returns its record.
func (e *Engine) up(ctx context.Context, pod *corev1.Pod) (core.Record, error) {
	limited, cancel := context.WithTimeout(ctx, e.config.scheduleTimeout())
	defer cancel()
	var last string
	now, err := e.pods.await(limited, pod.Name, func(p *corev1.Pod) (bool, error) {
		if p.UID != pod.UID || over(p) || container(p).State.Running != nil && p.Status.PodIP != "" {
			return true, nil
		}
		reason, message, final := problem(p)
		last = message
		switch {
		case final && strings.Contains(reason, "Image"):
			return false, fault.New(fault.Image, "the image %s can't be had: %s: %s", p.Spec.Containers[0].Image, reason, message)
		case final && strings.Contains(message, "subPath"): // the kubelet says no more
			return false, fault.New(fault.PermissionDenied, "a link in a host_path of the box leads out of a directory that this server shares with boxes (--host-root)")
		case final:
			return false, fault.New(fault.Engine, "the box can't be started: %s: %s", reason, message)
		}
		return false, nil
	})
	late := err != nil && ctx.Err() == nil && limited.Err() != nil
	switch lost := e.pods.lost(); {
	case late && lost != nil:
		return core.Record{}, failure(lost, "wait for the pod of a box")
	case late && last != "":
		return core.Record{}, fault.New(fault.ResourceExhausted, "no node takes the box%s: %s", volumesOf(pod), last)
	case late:
		return core.Record{}, fault.New(fault.Timeout, "the pod of the box%s did not start in time: see `kubectl describe pod %s`", volumesOf(pod), pod.Name)
	case err != nil:
		return core.Record{}, failure(err, "wait for the pod of a box")
	case now == nil || now.UID != pod.UID:
		return core.Record{}, fault.New(fault.Engine, "the pod of the box was deleted while it was made")
	}
	rec := e.record(now)
	if rec.Error != nil {
		return core.Record{}, fault.New(rec.Error.Code, "%s", rec.Error.Message)
	}
	if before, _ := annotated(now, "pod"); before.ImageID != "" && digestOf(before.ImageID) != digestOf(rec.ImageID) {
		return core.Record{}, fault.New(fault.Image, "%s is another image now than when the box was made (%s, then %s), which the box's disk does not fit", rec.Options.Image, rec.ImageID, before.ImageID)
	}
	if now, rec, err = e.learnUser(ctx, now, rec); err != nil {
		return core.Record{}, err
	}
	if err := e.answers(ctx, now, rec); err != nil {
		return core.Record{}, err
	}
	return rec, e.keep(ctx, e.diskOf(now), asked(rec, now), lifeOf(now))
}

// answers waits until the init in a pod that runs answers. It listens some milliseconds
// after its start.
func (e *Engine) answers(ctx context.Context, pod *corev1.Pod, rec core.Record) error {
	limit := answerTimeout
	if lifeOf(pod) > 1 {
		limit = restoreTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		conn, err := e.reach(ctx, pod, rec, true)
		if err == nil {
			return conn.Close()
		}
		if ended := e.failed(rec.ID); ended != nil {
			return ended
		}
		if fault.Classified(err) || ctx.Err() != nil {
			return e.Explain(rec.ID, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause): // nothing tells when a port is listened on
		}
	}
}

// failed returns why a box has failed, or nil.
func (e *Engine) failed(id string) error {
	rec, _, err := e.find(e.ctx, id)
	if err != nil || rec.Status != api.Failed || rec.Error == nil {
		return err
	}
	return fault.New(rec.Error.Code, "%s", rec.Error.Message)
}

// answerTimeout bounds how long an init may take to answer after its start.
const answerTimeout = 30 * time.Second

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
