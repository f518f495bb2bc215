package kubernetes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sandbox/core/options"
)

// TestProblem tells what keeps a pod from running for good from what the kubelet gets over.
func TestProblem(t *testing.T) {
	t.Parallel()
	const config = "CreateContainerConfigError"
	cases := map[string]struct {
		reason, message string
		final           bool
	}{
		"pulls":           {"ContainerCreating", "", false},
		"no keys yet":     {config, `secret "box-1-abcdefgh" not found`, false},
		"keys are late":   {config, "failed to sync secret cache: timed out waiting for the condition", false},
		"bad setting":     {config, "container has runAsNonRoot and image will run as root", true},
		"no such image":   {"ErrImagePull", "not found", true},
		"its pull failed": {"ImagePullBackOff", "Back-off pulling image", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: boxContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}},
			}}}}
			reason, message, final := problem(pod)
			if final != c.final || final && (reason != c.reason || message != c.message) {
				t.Errorf("got %q, %q, %v", reason, message, final)
			}
		})
	}
}

// TestSeccompProfile has a box behind the profile that the settings name, or else behind
// that of the runtime.
func TestSeccompProfile(t *testing.T) {
	t.Parallel()
	profile := func(c Config) *corev1.SeccompProfile {
		return (&Engine{config: c}).pod("box", options.Box{Image: "debian", CPUs: 1, MemoryMiB: 512}).Spec.SecurityContext.SeccompProfile
	}
	if p := profile(Config{}); p.Type != corev1.SeccompProfileTypeRuntimeDefault || p.LocalhostProfile != nil {
		t.Errorf("by itself: %v", p)
	}
	const file = "profiles/boxes.json"
	if p := profile(Config{SeccompProfile: file}); p.Type != corev1.SeccompProfileTypeLocalhost || p.LocalhostProfile == nil || *p.LocalhostProfile != file {
		t.Errorf("with a profile: %v", p)
	}
}
