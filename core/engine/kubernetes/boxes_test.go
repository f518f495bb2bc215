package kubernetes

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"sandbox/core"
	"sandbox/core/ids"
)

// TestDeleteChangedSpare has a spare change while it is being deleted: one that has become a
// box goes on, and one that is a spare still is deleted in its new version.
func TestDeleteChangedSpare(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]map[string]string{
		"it is a box":         {labelBox: ids.Box.New()},
		"it is a spare still": {labelSpare: "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := podAt("1", map[string]string{labelSpare: "kind"}), podAt("2", now)
			var e *Engine
			var deleted []string // the versions
			e = engineAt(t, func(r *http.Request) runtime.Object {
				if r.Method != http.MethodDelete {
					return after
				}
				asked := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new(string)}}
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				deleted = append(deleted, *asked.Preconditions.ResourceVersion)
				if *asked.Preconditions.ResourceVersion == after.ResourceVersion {
					return &metav1.Status{Status: metav1.StatusSuccess}
				}
				e.pods.put(after.DeepCopy()) // as who has changed it does
				return conflict()
			})
			e.pods.put(before)
			_, err := e.lines.of(before)
			must(t, err)
			must(t, e.delete(t.Context(), before))
			id := now[labelBox]
			switch ways := len(e.lines.known()); {
			case id != "" && (e.pods.ofBox(id) == nil || ways == 0 || len(deleted) != 1):
				t.Errorf("the box is not there, or cut off: %v, %d ways; deleted versions %v", e.pods.ofBox(id) != nil, ways, deleted)
			case id == "" && (e.pods.at(before.Name).DeletionTimestamp == nil || ways > 0 || len(deleted) != 2):
				t.Errorf("the spare is there still: %d ways; deleted versions %v", ways, deleted)
			}
		})
	}
}

// podAt returns a version of a pod.
func podAt(version string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "uid", ResourceVersion: version, Labels: labels},
	}
	if id := labels[labelBox]; id != "" {
		pod.Annotations = map[string]string{annotationRecord: encode(core.Record{ID: id})}
	}
	return pod
}

func conflict() runtime.Object {
	status := apierrors.NewConflict(corev1.Resource("pods"), "pod", nil).Status()
	return &status
}

// engineAt returns an engine that is ready, and whose API server answers what answer returns.
func engineAt(t *testing.T, answer func(*http.Request) runtime.Object) *Engine {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is := answer(r)
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		if failed, ok := is.(*metav1.Status); ok && failed.Code != 0 {
			w.WriteHeader(int(failed.Code))
		}
		_ = json.NewEncoder(w).Encode(is)
	}))
	t.Cleanup(server.Close)
	e, err := open(Config{Program: "none"}, connection{namespace: "none", rest: &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{
		ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON,
	}}})
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	e.keys = &authority{}
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
