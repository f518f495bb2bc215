package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// disks is what this process knows of the claims in which boxes keep their disks.
type disks struct {
	*copies[*corev1.PersistentVolumeClaim]
}

func newDisks(n *news) *disks {
	return &disks{newCopies(n, nameOf[*corev1.PersistentVolumeClaim])}
}

// ofBox returns the claim of a box, or nil. One that is being deleted has no box any more.
func (d *disks) ofBox(id string) *corev1.PersistentVolumeClaim {
	if disk := d.at(diskName(id)); disk != nil && isStored(disk) {
		return disk
	}
	return nil
}

// rereadDisk reads a claim anew; nil if there is none.
func (e *Engine) rereadDisk(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	disk, err := e.api.disks.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failure(err, "read the claim of a box's disk")
	}
	e.disks.put(disk)
	return disk, nil
}
