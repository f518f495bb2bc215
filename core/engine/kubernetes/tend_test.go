package kubernetes

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// TestFinishStale has the time of a box end when its pod is another than this process knows:
// one that has changed is looked at again, a while later and as it is then, and one that has
// gone is not.
func TestFinishStale(t *testing.T) {
	t.Parallel()
	id, past := ids.Box.New(), time.Now().Add(-time.Minute).UTC()
	rec := core.Record{ID: id, Status: api.Running, ExpiresAt: &past, Options: options.Box{OnExpiry: options.ExpiryStop}}
	ended := rec
	ended.ExpiresAt, ended.Reason = nil, reasonExpired
	version := func(v string, rec core.Record) *corev1.Pod {
		pod := podAt(v, map[string]string{labelBox: id})
		pod.Annotations[annotationRecord] = encode(rec)
		return pod
	}
	t.Run("it has changed", func(t *testing.T) {
		t.Parallel()
		tries := 0
		e := engineAt(t, func(r *http.Request) runtime.Object {
			if r.Method == http.MethodPatch {
				tries++
				return conflict()
			}
			return version("2", ended)
		})
		e.pods.put(version("1", rec))
		if err := e.endExpired(t.Context(), id); err == nil {
			t.Error("what has failed counts as done")
		}
		must(t, e.endExpired(t.Context(), id))
		if tries != 1 || e.pods.ofBox(id).ResourceVersion != "2" {
			t.Errorf("%d tries, and the box is known in version %s: want one, and 2", tries, e.pods.ofBox(id).ResourceVersion)
		}
	})
	t.Run("it has gone", func(t *testing.T) {
		t.Parallel()
		e := engineAt(t, func(*http.Request) runtime.Object {
			gone := apierrors.NewNotFound(corev1.Resource("pods"), "pod").Status()
			return &gone
		})
		e.pods.put(version("1", rec))
		must(t, e.endExpired(t.Context(), id))
		if e.pods.ofBox(id) != nil {
			t.Error("the box is there still, and would be ended again at once")
		}
	})
}
