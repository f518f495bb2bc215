package kubernetes

import (
	"context"
	"io"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"sandbox/core/fault"
)

// objects are the kinds of objects that the engine works with, in its namespace. They are
// put together here, since client-go's own set of all kinds would make the start of each
// program that links the engine, the command line among them, 10 ms longer.
type objects struct {
	core     rest.Interface
	pods     *gentype.ClientWithList[*corev1.Pod, *corev1.PodList]
	secrets  *gentype.ClientWithList[*corev1.Secret, *corev1.SecretList]
	disks    *gentype.ClientWithList[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]
	names    *gentype.ClientWithList[*corev1.ConfigMap, *corev1.ConfigMapList]
	services *gentype.ClientWithList[*corev1.Service, *corev1.ServiceList]
	policies *gentype.Client[*networkingv1.NetworkPolicy]

	// Of agent-sandbox: see agents.
	templates, pools, claims, sandboxes dynamic.ResourceInterface
}

func newObjects(c connection) (objects, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return objects{}, fault.Wrap(fault.Internal, err, "know the kinds of objects")
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codec := runtime.NewParameterCodec(scheme)
	client, err := rest.HTTPClientFor(c.rest) // one, so that all share its connections
	if err != nil {
		return objects{}, fault.Wrap(fault.Config, err, "use the kubeconfig")
	}
	group := func(path string, gv schema.GroupVersion) (rest.Interface, error) {
		config := *c.rest
		config.APIPath, config.GroupVersion = path, &gv
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		one, err := rest.RESTClientForConfigAndClient(&config, client)
		return one, fault.Wrap(fault.Config, err, "use the kubeconfig")
	}
	core, err := group("/api", corev1.SchemeGroupVersion)
	if err != nil {
		return objects{}, err
	}
	networking, err := group("/apis", networkingv1.SchemeGroupVersion)
	if err != nil {
		return objects{}, err
	}
	custom, err := dynamic.NewForConfigAndClient(c.rest, client)
	if err != nil {
		return objects{}, fault.Wrap(fault.Config, err, "use the kubeconfig")
	}
	extensions := schema.GroupVersion{Group: "extensions." + agentGroup, Version: agentVersion}
	agents := schema.GroupVersion{Group: agentGroup, Version: agentVersion}
	return objects{
		templates: custom.Resource(extensions.WithResource("sandboxtemplates")).Namespace(c.namespace),
		pools:     custom.Resource(extensions.WithResource("sandboxwarmpools")).Namespace(c.namespace),
		claims:    custom.Resource(extensions.WithResource("sandboxclaims")).Namespace(c.namespace),
		sandboxes: custom.Resource(agents.WithResource("sandboxes")).Namespace(c.namespace),

		core: core,
		pods: gentype.NewClientWithList("pods", core, codec, c.namespace,
			func() *corev1.Pod { return &corev1.Pod{} }, func() *corev1.PodList { return &corev1.PodList{} }, gentype.PrefersProtobuf[*corev1.Pod]()),
		secrets: gentype.NewClientWithList("secrets", core, codec, c.namespace,
			func() *corev1.Secret { return &corev1.Secret{} }, func() *corev1.SecretList { return &corev1.SecretList{} }, gentype.PrefersProtobuf[*corev1.Secret]()),
		names: gentype.NewClientWithList("configmaps", core, codec, c.namespace,
			func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, func() *corev1.ConfigMapList { return &corev1.ConfigMapList{} }, gentype.PrefersProtobuf[*corev1.ConfigMap]()),
		services: gentype.NewClientWithList("services", core, codec, c.namespace,
			func() *corev1.Service { return &corev1.Service{} }, func() *corev1.ServiceList { return &corev1.ServiceList{} }, gentype.PrefersProtobuf[*corev1.Service]()),
		disks: gentype.NewClientWithList("persistentvolumeclaims", core, codec, c.namespace,
			func() *corev1.PersistentVolumeClaim { return &corev1.PersistentVolumeClaim{} }, func() *corev1.PersistentVolumeClaimList { return &corev1.PersistentVolumeClaimList{} },
			gentype.PrefersProtobuf[*corev1.PersistentVolumeClaim]()),
		policies: gentype.NewClient("networkpolicies", networking, codec, c.namespace,
			func() *networkingv1.NetworkPolicy { return &networkingv1.NetworkPolicy{} }),
	}, nil
}

// forward returns where connections to ports of a pod are made through the API server.
func (a objects) forward(namespace, pod string) *url.URL {
	return a.core.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
}

// log returns what process 1 of a pod has written, and writes until the reader is closed.
func (a objects) log(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
	return a.core.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
		Param("container", boxContainer).Param("follow", "true").Param("limitBytes", "65536").Stream(ctx)
}
