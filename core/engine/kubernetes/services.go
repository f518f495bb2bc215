package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// newServices returns what this process knows of the Services that publish ports of boxes,
// by the UIDs of the pods that they belong to.
func newServices(n *news) *copies[*corev1.Service] {
	return newCopies(n, func(service *corev1.Service) string {
		if len(service.OwnerReferences) == 0 {
			return "" // changed by hand: it belongs to no box
		}
		return string(service.OwnerReferences[0].UID)
	})
}

// publish publishes the ports of a new box by a Service, and lets in what comes to them.
// Both belong to the pod, and go with it. Errors: PortInUse, those of failure.
func (e *Engine) publish(ctx context.Context, pod *corev1.Pod, ports []options.Port) error {
	if len(ports) == 0 {
		return nil
	}
	meta := metav1.ObjectMeta{GenerateName: pod.Name + "-", Labels: map[string]string{labelSlot: pod.Name}, OwnerReferences: []metav1.OwnerReference{owner(pod)}}
	if _, err := e.api.policies.Create(ctx, wayIn(meta, ports), metav1.CreateOptions{}); err != nil {
		return failure(err, "let in what comes to the published ports of a box")
	}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceType(e.config.PublishService), Selector: meta.Labels}}
	for i, p := range ports {
		service.Spec.Ports = append(service.Spec.Ports, e.servicePort(i, p))
	}
	made, err := e.api.services.Create(ctx, service, metav1.CreateOptions{})
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "already allocated") {
		return fault.Wrap(fault.PortInUse, err, "publish the ports of a box")
	}
	if err != nil {
		return failure(err, "publish the ports of a box")
	}
	e.services.put(made)
	return nil
}

// unpublish deletes the Service of a box that is removed. The collector of the cluster
// would do so too, but later: then the next box could not have the same ports at once.
func (e *Engine) unpublish(ctx context.Context, pod *corev1.Pod) error {
	service := e.services.at(string(pod.UID))
	if service == nil {
		return nil
	}
	err := e.api.services.Delete(ctx, service.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return failure(err, "unpublish the ports of a box")
	}
	e.services.drop(service)
	return nil
}

// servicePort returns the i-th port of a box as that of a Service: host_port is the port
// of the nodes, or that of the load balancer.
func (e *Engine) servicePort(i int, p options.Port) corev1.ServicePort {
	port := corev1.ServicePort{
		Name: fmt.Sprintf("port-%d", i), Protocol: protocol(p), Port: int32(p.GuestPort), TargetPort: intstr.FromInt32(int32(p.GuestPort)),
	}
	if e.config.PublishService == PublishNodePort {
		port.NodePort = int32(p.HostPort)
	} else {
		port.Port = int32(cmp.Or(p.HostPort, p.GuestPort))
	}
	return port
}

func protocol(p options.Port) corev1.Protocol { return corev1.Protocol(strings.ToUpper(p.Protocol)) }

// wayIn returns the rule that lets in what comes to published ports, from wherever.
func wayIn(meta metav1.ObjectMeta, ports []options.Port) *networkingv1.NetworkPolicy {
	var in []networkingv1.NetworkPolicyPort
	for _, p := range ports {
		proto, port := protocol(p), intstr.FromInt32(int32(p.GuestPort))
		in = append(in, networkingv1.NetworkPolicyPort{Protocol: &proto, Port: &port})
	}
	return &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: meta.Labels},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: in}},
	}}
}

// record returns the record of a box, with the addresses of its ports.
func (e *Engine) record(pod *corev1.Pod) core.Record {
	rec := recordOf(pod)
	if service := e.services.at(string(pod.UID)); service != nil {
		address(rec.Options.Ports, service, pod.Status.HostIP)
	}
	return rec
}

// address writes into the ports of a box where its Service publishes them. A load
// balancer has an address only some time after it was made.
func address(ports []options.Port, service *corev1.Service, node string) {
	for i := range min(len(ports), len(service.Spec.Ports)) {
		at := service.Spec.Ports[i]
		if service.Spec.Type == corev1.ServiceTypeNodePort {
			ports[i].HostIP, ports[i].HostPort = node, int(at.NodePort)
			continue
		}
		ports[i].HostIP, ports[i].HostPort = "", int(at.Port)
		for _, balancer := range service.Status.LoadBalancer.Ingress {
			ports[i].HostIP = cmp.Or(ports[i].HostIP, balancer.IP, balancer.Hostname)
		}
	}
}
