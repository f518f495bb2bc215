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
	pods     quiet[*corev1.Pod, *corev1.PodList]
	secrets  quiet[*corev1.Secret, *corev1.SecretList]
	disks    quiet[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]
	names    quiet[*corev1.ConfigMap, *corev1.ConfigMapList]
	services quiet[*corev1.Service, *corev1.ServiceList]
	policies quiet[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList]

	// Of agent-sandbox: see agents.
	templates, pools, claims, sandboxes custom
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
	others, err := dynamic.NewForConfigAndClient(c.rest, client)
	if err != nil {
		return objects{}, fault.Wrap(fault.Config, err, "use the kubeconfig")
	}
	agent := func(group, resource string) custom {
		kind := schema.GroupVersionResource{Group: group, Version: agentVersion, Resource: resource}
		return custom{others.Resource(kind).Namespace(c.namespace)}
	}
	return objects{
		templates: agent("extensions."+agentGroup, "sandboxtemplates"),
		pools:     agent("extensions."+agentGroup, "sandboxwarmpools"),
		claims:    agent("extensions."+agentGroup, "sandboxclaims"),
		sandboxes: agent(agentGroup, "sandboxes"),

		core:     core,
		pods:     clientOf("pods", core, codec, c.namespace, newOf[corev1.Pod], newOf[corev1.PodList]),
		secrets:  clientOf("secrets", core, codec, c.namespace, newOf[corev1.Secret], newOf[corev1.SecretList]),
		names:    clientOf("configmaps", core, codec, c.namespace, newOf[corev1.ConfigMap], newOf[corev1.ConfigMapList]),
		services: clientOf("services", core, codec, c.namespace, newOf[corev1.Service], newOf[corev1.ServiceList]),
		disks:    clientOf("persistentvolumeclaims", core, codec, c.namespace, newOf[corev1.PersistentVolumeClaim], newOf[corev1.PersistentVolumeClaimList]),
		policies: clientOf("networkpolicies", networking, codec, c.namespace, newOf[networkingv1.NetworkPolicy], newOf[networkingv1.NetworkPolicyList]),
	}, nil
}

// clientOf returns the client of one kind of objects.
func clientOf[T object, L runtime.Object](resource string, group rest.Interface, codec runtime.ParameterCodec, namespace string, one func() T, list func() L) quiet[T, L] {
	return quiet[T, L]{gentype.NewClientWithList(resource, group, codec, namespace, one, list, gentype.PrefersProtobuf[T]())}
}

func newOf[T any]() *T { return new(T) }

// forward returns where connections to ports of a pod are made through the API server.
func (a objects) forward(namespace, pod string) *url.URL {
	return a.core.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
}

// log returns what process 1 of a pod has written, and writes until the reader is closed.
func (a objects) log(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
	return a.core.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
		Param("container", boxContainer).Param("follow", "true").Param("limitBytes", "65536").Stream(silent(ctx))
}
