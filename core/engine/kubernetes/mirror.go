package kubernetes

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// again is how long the next try to list or watch waits after one that failed.
var again = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 2 * time.Second}

// object is what clients work with.
type object interface {
	runtime.Object
	metav1.Object
}

// lister is the client of one kind of objects.
type lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// mirror keeps store up to date with the objects that pick selects until ctx ends, and
// notes how each request went.
func mirror[L runtime.Object](ctx context.Context, client lister[L], pick func(*metav1.ListOptions), example object, store cache.ReflectorStore, note func(error)) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			pick(&o)
			all, err := client.List(ctx, o)
			note(err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			pick(&o)
			w, err := client.Watch(ctx, o)
			note(err)
			return w, err
		},
	}
	pause := again
	none := logr.Discard()
	cache.NewReflectorWithOptions(lw, example, store, cache.ReflectorOptions{Name: "objects", Logger: &none, Backoff: &pause}).RunWithContext(silent(ctx))
}
