package kubernetes

import (
	"context"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
)

// silent has client-go print nothing: this is a guest in its process, and errors tell what
// there is. Without it, a request whose context ends while the answer is read is told of
// on the standard error.
func silent(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// quiet is the client of one kind of objects that is silent in all that it does.
type quiet[T object, L runtime.Object] struct {
	client *gentype.ClientWithList[T, L]
}

func (q quiet[T, L]) Create(ctx context.Context, one T, o metav1.CreateOptions) (T, error) {
	return q.client.Create(silent(ctx), one, o)
}

func (q quiet[T, L]) Update(ctx context.Context, one T, o metav1.UpdateOptions) (T, error) {
	return q.client.Update(silent(ctx), one, o)
}

func (q quiet[T, L]) Patch(ctx context.Context, name string, by types.PatchType, body []byte, o metav1.PatchOptions, part ...string) (T, error) {
	return q.client.Patch(silent(ctx), name, by, body, o, part...)
}

func (q quiet[T, L]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return q.client.Delete(silent(ctx), name, o)
}

func (q quiet[T, L]) Get(ctx context.Context, name string, o metav1.GetOptions) (T, error) {
	return q.client.Get(silent(ctx), name, o)
}

func (q quiet[T, L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	return q.client.List(silent(ctx), o)
}

func (q quiet[T, L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return q.client.Watch(silent(ctx), o)
}

// custom is the client of one kind of objects of agent-sandbox, which is silent, too.
type custom struct{ client dynamic.ResourceInterface }

func (c custom) Create(ctx context.Context, one *unstructured.Unstructured, o metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return c.client.Create(silent(ctx), one, o)
}

func (c custom) Apply(ctx context.Context, name string, one *unstructured.Unstructured, o metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return c.client.Apply(silent(ctx), name, one, o)
}

func (c custom) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return c.client.Delete(silent(ctx), name, o)
}

func (c custom) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return c.client.List(silent(ctx), o)
}

func (c custom) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return c.client.Watch(silent(ctx), o)
}
