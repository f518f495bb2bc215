package kubernetes

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandbox/core"
)

// digestOf returns the digest of an image's ID, which is REPOSITORY@DIGEST, or DIGEST alone
// for an image that is from no registry.
func digestOf(id string) string { return id[strings.LastIndex(id, "@")+1:] }

// spare makes a box of a pod that is ready, and returns that; nil if there is none. A pod
// that was made before the tag of its image led elsewhere is of no use.
func (e *Engine) spare(ctx context.Context, rec core.Record) (*corev1.Pod, error) {
	pod, err := e.spares.claim(ctx, rec)
	if pod == nil || rec.ImageID == "" || digestOf(container(pod).ImageID) == digestOf(rec.ImageID) {
		return pod, err
	}
	return nil, e.discard(ctx, pod)
}

// learnUser writes the user that the image of a box names into the record of the box, if it
// names none itself, and returns pod and record as they are then. All programs tell init the
// same, and each life of the box has the same. Where the registry can't be asked, the user
// is root.
func (e *Engine) learnUser(ctx context.Context, pod *corev1.Pod, rec core.Record) (*corev1.Pod, core.Record, error) {
	if rec.Options.User != "" || e.config.Look == nil || !strings.Contains(rec.ImageID, "@") {
		return pod, rec, nil
	}
	img, err := e.config.Look(ctx, rec.ImageID)
	if err != nil || img.User == "" {
		return pod, rec, nil //nolint:nilerr // as the documents say
	}
	for {
		written, _ := annotated(pod, "pod")
		written.Options.User = img.User
		err := e.patch(ctx, pod, written, nil, nil)
		if err == nil {
			pod = cmp.Or(e.pods.at(pod.Name), pod)
			return pod, e.record(pod), nil
		}
		if !apierrors.IsConflict(err) {
			return pod, rec, failure(err, "note the user of the image")
		}
		if pod, err = e.reread(ctx, pod.Name); err != nil {
			return pod, rec, failure(err, "read the record of a box")
		}
	}
}

// PullSecrets returns the documents of the Secrets with which the nodes pull images: those of
// them that are there. Errors: those of failure.
func (e *Engine) PullSecrets(ctx context.Context) (documents [][]byte, err error) {
	for _, name := range e.config.PullSecrets {
		secret, err := e.api.secrets.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // the kubelet passes over it, too
		}
		if err != nil {
			return nil, failure(err, "read the pull secret %s", name)
		}
		documents = append(documents, secret.Data[corev1.DockerConfigJsonKey])
	}
	return documents, nil
}
