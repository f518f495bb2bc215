package kubernetes

import (
	"context"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"
)

// disks is what this process knows of the claims in which boxes keep their disks: a copy
// that a watch keeps up to date, as [pods] is of pods. It implements [cache.ReflectorStore].
type disks struct {
	client *gentype.ClientWithList[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]
	tell   func() // wakes all who wait for a change

	mu     sync.Mutex
	byName map[string]*corev1.PersistentVolumeClaim // nobody changes these
	since  map[types.UID]time.Time                  // when this process first saw each: clocks differ
	whole  bool                                     // all claims are here
	failed error                                    // of the last try to list or watch; nil once that works
}

// follow keeps the copy up to date until ctx ends.
func (d *disks) follow(ctx context.Context) {
	mirror(ctx, d.client, func(o *metav1.ListOptions) { o.LabelSelector = labelBox }, &corev1.PersistentVolumeClaim{}, d, d.note)
}

// note notes how a request went.
func (d *disks) note(err error) {
	d.mu.Lock()
	d.failed = err
	d.mu.Unlock()
	d.tell()
}

// known returns whether all claims are here, and why they could not be had.
func (d *disks) known() (whole bool, failed error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.whole, d.failed
}

// named returns the claim of a name, or nil.
func (d *disks) named(name string) *corev1.PersistentVolumeClaim {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byName[name]
}

// ofBox returns the claim of a box, or nil. One that is being deleted has no box any more.
func (d *disks) ofBox(id string) *corev1.PersistentVolumeClaim {
	if disk := d.named(diskName(id)); disk != nil && isStored(disk) {
		return disk
	}
	return nil
}

// all returns the claims that want returns true for.
func (d *disks) all(want func(*corev1.PersistentVolumeClaim) bool) (found []*corev1.PersistentVolumeClaim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, disk := range d.byName {
		if want(disk) {
			found = append(found, disk)
		}
	}
	return found
}

// age returns for how long this process has seen a claim.
func (d *disks) age(disk *corev1.PersistentVolumeClaim) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Since(d.since[disk.UID])
}

// put takes in a claim as the API server has answered it.
func (d *disks) put(disk *corev1.PersistentVolumeClaim) {
	disk.ManagedFields = nil
	d.mu.Lock()
	before := d.byName[disk.Name]
	if before == nil || before.UID != disk.UID || version(before) < version(disk) {
		d.byName[disk.Name] = disk
		if _, seen := d.since[disk.UID]; !seen {
			d.since[disk.UID] = time.Now()
		}
	}
	d.mu.Unlock()
	d.tell()
}

// leave notes that a claim is being deleted, before the watch tells so.
func (d *disks) leave(disk *corev1.PersistentVolumeClaim) {
	d.mu.Lock()
	if now := d.byName[disk.Name]; now != nil && now.UID == disk.UID && now.DeletionTimestamp == nil {
		leaving, at := now.DeepCopy(), metav1.Now()
		leaving.DeletionTimestamp = &at
		d.byName[disk.Name] = leaving
	}
	d.mu.Unlock()
	d.tell()
}

// Add implements [cache.ReflectorStore].
func (d *disks) Add(o any) error { return d.Update(o) }

// Update implements [cache.ReflectorStore].
func (d *disks) Update(o any) error {
	if disk, ok := o.(*corev1.PersistentVolumeClaim); ok {
		d.put(disk)
	}
	return nil
}

// Delete implements [cache.ReflectorStore].
func (d *disks) Delete(o any) error {
	if disk, ok := o.(*corev1.PersistentVolumeClaim); ok {
		d.mu.Lock()
		if now := d.byName[disk.Name]; now != nil && now.UID == disk.UID {
			delete(d.byName, disk.Name)
		}
		delete(d.since, disk.UID)
		d.mu.Unlock()
		d.tell()
	}
	return nil
}

// Replace implements [cache.ReflectorStore]. What this process made while the list was
// on its way is in a later version, and stays.
func (d *disks) Replace(list []any, at string) error {
	then, _ := strconv.ParseUint(at, 10, 64)
	listed := map[string]*corev1.PersistentVolumeClaim{}
	since := map[types.UID]time.Time{}
	d.mu.Lock()
	for _, o := range list {
		if disk, ok := o.(*corev1.PersistentVolumeClaim); ok {
			disk.ManagedFields = nil
			listed[disk.Name] = disk
		}
	}
	for name, disk := range d.byName {
		if version(disk) > then {
			listed[name] = disk
		}
	}
	for _, disk := range listed {
		seen, ok := d.since[disk.UID]
		if !ok {
			seen = time.Now()
		}
		since[disk.UID] = seen
	}
	d.byName, d.since, d.whole, d.failed = listed, since, true, nil
	d.mu.Unlock()
	d.tell()
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*disks) Resync() error { return nil }

// reread reads a claim anew; nil if there is none.
func (d *disks) reread(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	disk, err := d.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failure(err, "read the claim of a box's disk")
	}
	d.put(disk)
	return disk, nil
}
