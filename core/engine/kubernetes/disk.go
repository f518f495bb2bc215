package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// A box with a disk is a claim, and while it is up a pod too. The pod has the record then;
// the claim has the one of the last stop, or of the last start. A pod that has ended is
// settled: its record goes into the claim, and then the pod is deleted.

// DefaultDiskGB is the size of the disk of a box that asks for none, in GiB: what a box
// of one machine needs that has a compiler and a few packages installed.
const DefaultDiskGB = 10

const (
	// annotationLife is how often a box was started: of a claim that has run, and of a pod.
	annotationLife = "sandbox/life"

	diskVolume  = "disk"
	imageVolume = "image"
	diskDir     = "/.sandbox-disk"  // where process 1 saves what the box has changed
	imageDir    = "/.sandbox-image" // the files of the image, as they were

	// saveTime is how much longer a box may take to end when the cluster ends it, since its
	// disk is saved: 60 s are enough for some gigabytes.
	saveTime = 60 * time.Second
	// restoreTimeout bounds how long an init may take to put back a disk.
	restoreTimeout = 15 * time.Minute
)

func diskName(id string) string { return podName(id) }

// keeps reports whether a new box gets a disk of its own. One with auto_remove needs none,
// since it goes when it is stopped.
func (e *Engine) keeps(o options.Box) bool { return e.config.DiskClass != "" && !o.AutoRemove }

// diskGB returns the size of the disk of a box.
func (e *Engine) diskGB(o options.Box) int {
	return cmp.Or(o.DiskSizeGB, e.config.DiskGB, DefaultDiskGB)
}

// provide makes the claim for the disk of a new box. If another program makes the same
// box, it is that one's.
func (e *Engine) provide(ctx context.Context, rec core.Record) (*corev1.PersistentVolumeClaim, error) {
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: diskName(rec.ID), Labels: map[string]string{labelBox: rec.ID}, Annotations: map[string]string{annotationRecord: encode(rec)},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &e.config.DiskClass,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: *resource.NewQuantity(int64(e.diskGB(rec.Options))<<30, resource.BinarySI),
			}},
		},
	}
	for {
		made, err := e.api.disks.Create(ctx, want, metav1.CreateOptions{})
		if err == nil {
			e.disks.put(made)
			return made, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, failure(err, "make the claim for the disk of a box")
		}
		there, err := e.rereadDisk(ctx, want.Name)
		if err != nil || there != nil && there.DeletionTimestamp == nil {
			return there, err
		}
		if err := e.awaitGone(ctx, there); err != nil {
			return nil, err
		}
	}
}

// awaitGone waits until a claim that is being deleted has gone.
func (e *Engine) awaitGone(ctx context.Context, disk *corev1.PersistentVolumeClaim) error {
	if disk == nil {
		return nil
	}
	err := e.news.await(ctx, func() (bool, error) {
		now := e.disks.at(disk.Name)
		return now == nil || now.UID != disk.UID, nil
	})
	return failure(err, "wait until the box before has gone")
}

// attach gives a pod the disk of its box, for a life of it.
func (e *Engine) attach(pod *corev1.Pod, disk *corev1.PersistentVolumeClaim, o options.Box, life int) {
	pod.OwnerReferences = []metav1.OwnerReference{ownerDisk(disk)}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationLife] = strconv.Itoa(life)
	longer := *pod.Spec.TerminationGracePeriodSeconds + int64(saveTime/time.Second)
	pod.Spec.TerminationGracePeriodSeconds = &longer
	c := &pod.Spec.Containers[0]
	o.DiskSizeGB = e.diskGB(o)
	c.Resources = resources(o)
	c.Command = append(c.Command, "-disk", diskDir, "-image", imageDir, "-life", strconv.Itoa(life))
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: diskVolume, MountPath: diskDir}, corev1.VolumeMount{Name: imageVolume, MountPath: imageDir, ReadOnly: true})
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: diskVolume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: disk.Name}}},
		corev1.Volume{Name: imageVolume, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: c.Image, PullPolicy: c.ImagePullPolicy}}})
}

// hasDisk reports whether a pod has the disk of its box.
func hasDisk(pod *corev1.Pod) bool { return pod.Annotations[annotationLife] != "" }

// diskOf returns the claim of a pod, or nil.
func (e *Engine) diskOf(pod *corev1.Pod) *corev1.PersistentVolumeClaim {
	if !hasDisk(pod) {
		return nil
	}
	return e.disks.ofBox(pod.Labels[labelBox])
}

// lifeOf returns which life of its box a pod is, or which was the last that a claim knows.
func lifeOf(o metav1.Object) int {
	life, _ := strconv.Atoi(o.GetAnnotations()[annotationLife])
	return life
}

// isStored reports whether a claim is a box.
func isStored(disk *corev1.PersistentVolumeClaim) bool {
	return disk.Labels[labelBox] != "" && disk.DeletionTimestamp == nil
}

// storedOf returns the record of a box that has no pod now.
func storedOf(disk *corev1.PersistentVolumeClaim) core.Record {
	rec, damaged := annotated(disk, "claim")
	if damaged || !rec.Status.Up() {
		return rec
	}
	fail(&rec, time.Now().UTC(), "pod_gone", fault.New(fault.Engine,
		"the pod of the box has gone: start the box, whose disk is as it was saved last; what has changed since may be lost"))
	rec.StoppedAt = nil // nobody has seen when
	return rec
}

// keep writes the record of a box into its claim, unless a later life of the box has begun.
func (e *Engine) keep(ctx context.Context, disk *corev1.PersistentVolumeClaim, rec core.Record, life int) error {
	for disk != nil && disk.DeletionTimestamp == nil && lifeOf(disk) <= life {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": disk.ResourceVersion, "annotations": map[string]string{annotationRecord: encode(rec), annotationLife: strconv.Itoa(life)},
		}})
		if err != nil {
			return err
		}
		changed, err := e.api.disks.Patch(ctx, disk.Name, types.MergePatchType, body, metav1.PatchOptions{})
		if err == nil {
			e.disks.put(changed)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return failure(err, "keep the record of a box")
		}
		if disk, err = e.rereadDisk(ctx, disk.Name); err != nil {
			return err
		}
	}
	return nil
}

// asked returns a record with the ports that its box has asked for, and not those that its
// pod has got.
func asked(rec core.Record, pod *corev1.Pod) core.Record {
	written, _ := annotated(pod, "pod")
	rec.Options.Ports = written.Options.Ports
	return rec
}

// settle keeps the record of a box whose pod has ended, and deletes the pod.
func (e *Engine) settle(ctx context.Context, pod *corev1.Pod, rec core.Record) error {
	if err := e.keep(ctx, e.diskOf(pod), asked(rec, pod), lifeOf(pod)); err != nil {
		return err
	}
	return e.delete(ctx, pod)
}

// Start starts a box that has a disk; see [core.Boxes].
func (e *Engine) Start(ctx context.Context, id string) (core.Record, error) {
	unlock, err := e.turns.take(ctx, id)
	if err != nil {
		return core.Record{}, err
	}
	defer unlock()
	rec, pod, err := e.find(ctx, id)
	switch {
	case err != nil:
		return rec, err
	case rec.Status.Up():
		return rec, fault.New(fault.InvalidState, "box %s is %s already", id, rec.Status)
	}
	disk := e.disks.ofBox(id)
	if disk == nil {
		return rec, errDisk("start")
	}
	made := false
	if pod == nil || over(pod) {
		if pod, made, err = e.revive(ctx, disk, pod); err != nil {
			return rec, err
		}
	}
	rec, err = e.up(ctx, pod)
	switch {
	case err == nil || !made:
		return rec, err
	case fault.Is(err, fault.Storage): // the disk is damaged
		rec = recordOf(pod)
		fail(&rec, time.Now().UTC(), reasonDamaged, err)
		return rec, errors.Join(err, e.settle(context.WithoutCancel(ctx), pod, rec))
	}
	return rec, errors.Join(err, e.discard(ctx, pod))
}

// revive makes a pod for the next life of a box, whose last pod is over, or nil. It returns
// whether the pod is new: another program may start the box at the same time.
func (e *Engine) revive(ctx context.Context, disk *corev1.PersistentVolumeClaim, last *corev1.Pod) (pod *corev1.Pod, made bool, err error) {
	id := disk.Labels[labelBox]
	rec, damaged := annotated(disk, "claim")
	if damaged {
		return nil, false, fault.New(rec.Error.Code, "%s", rec.Error.Message)
	}
	if last != nil {
		rec = recordOf(last)
		if err := e.settle(ctx, last, rec); err != nil {
			return nil, false, err
		}
	} else if err := e.awaitSaved(ctx, id, rec); err != nil {
		return nil, false, err
	}
	if now := e.disks.ofBox(id); now != nil {
		disk = now
	}
	if err := e.checkVolumes(ctx, rec.Options.Volumes); err != nil {
		return nil, false, err
	}
	rec = core.Record{ID: id, Options: rec.Options, ImageID: rec.ImageID, Status: api.Created, CreatedAt: rec.CreatedAt, UpdatedAt: time.Now().UTC()}
	for pod == nil {
		want := e.boxPod(rec, disk, lifeOf(disk)+1)
		pod, err = e.post(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			if pod, err = e.other(ctx, want.Name); pod != nil || err != nil {
				return pod, false, err
			}
			continue
		}
		if err != nil {
			return nil, false, failure(err, "create the pod of a box")
		}
	}
	err = e.publish(ctx, pod, rec.Options.Ports)
	if err == nil {
		err = e.give(ctx, pod)
	}
	if err != nil {
		return nil, false, errors.Join(err, e.discard(ctx, pod))
	}
	return pod, true, nil
}

// awaitSaved waits until the pods of a box have gone that somebody else has deleted: they
// may be saving the disk.
func (e *Engine) awaitSaved(ctx context.Context, id string, rec core.Record) error {
	if !rec.Status.Up() { // it was stopped and saved
		return nil
	}
	for _, pod := range e.pods.all(func(p *corev1.Pod) bool { return p.Labels[labelBox] == id }) {
		if _, err := e.pods.await(ctx, pod.Name, func(now *corev1.Pod) (bool, error) { return now.UID != pod.UID || over(now), nil }); err != nil {
			return failure(err, "wait until the disk of box %s is saved", id)
		}
	}
	return nil
}

// forgetDisk deletes the claim of a box, and with it, once no pod uses it any more, all
// that belongs to it.
func (e *Engine) forgetDisk(ctx context.Context, disk *corev1.PersistentVolumeClaim) error {
	if disk == nil {
		return nil
	}
	err := e.api.disks.Delete(ctx, disk.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &disk.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return failure(err, "delete the claim of a box's disk")
	}
	e.disks.leave(disk)
	return nil
}

// tendDisks settles boxes whose pods have ended, and removes what is left of boxes that
// were removed or never made, as when a program was killed in between. It returns when
// there may be more to do.
func (e *Engine) tendDisks(ctx context.Context) (next time.Duration, err error) {
	next = forever
	for _, disk := range e.disks.all(func(*corev1.PersistentVolumeClaim) bool { return true }) {
		pods := e.pods.all(func(p *corev1.Pod) bool {
			return p.Labels[labelBox] == disk.Labels[labelBox] && p.DeletionTimestamp == nil
		})
		if disk.DeletionTimestamp != nil {
			for _, pod := range pods {
				err = errors.Join(err, e.delete(ctx, pod))
			}
			continue
		}
		for _, pod := range pods {
			if over(pod) && hasDisk(pod) {
				err = errors.Join(err, e.settle(ctx, pod, recordOf(pod)))
			}
		}
		if rec, damaged := annotated(disk, "claim"); len(pods) > 0 || damaged || rec.Status != api.Created {
			continue
		}
		left := 2*e.config.scheduleTimeout() - e.disks.age(disk)
		if left > 0 {
			next = min(next, left)
			continue
		}
		err = errors.Join(err, e.forgetDisk(ctx, disk))
	}
	return next, err
}
