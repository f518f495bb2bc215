package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

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
