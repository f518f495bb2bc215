package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sandbox/core/options"
)

// private are the addresses that no box of network Isolated reaches: those of clusters
// and of hosts, and those that clouds tell their secrets on.
var private = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"}

// fence makes the rules of the two networks, where they are missing. Whether the cluster
// holds them is up to its network: see docs/kubernetes.md.
func (e *Engine) fence(ctx context.Context) error {
	for _, p := range policies() {
		_, err := e.api.policies.Create(ctx, p, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return failure(err, "make the rules of the boxes' networks")
		}
	}
	return nil
}

// policies returns the rules. Into a box leads only the port of its init, which knows
// its engines by their certificate.
func policies() []*networkingv1.NetworkPolicy {
	policy := func(name, network string, egress ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
		tcp, port := corev1.ProtocolTCP, intstr.FromInt32(linkPort)
		return &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelNetwork: network}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
				Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}}}},
				Egress:      egress,
			},
		}
	}
	udp, tcp, dns := corev1.ProtocolUDP, corev1.ProtocolTCP, intstr.FromInt32(53)
	return []*networkingv1.NetworkPolicy{
		policy("sandbox-none", options.NetworkNone),
		policy("sandbox-isolated", options.NetworkIsolated,
			networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: &dns}, {Protocol: &tcp, Port: &dns}}},
			networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{
				{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: private}},
			}},
		),
	}
}
