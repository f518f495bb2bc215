package kubernetes

import (
	"crypto/rand"
	"crypto/x509"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandbox/core"
	"sandbox/core/options"
)

const (
	boxContainer = "box"
	linkPort     = 7443
	// programDir is where a box has its init.
	programDir = "/.sandbox"
	// grace is how long commands have between SIGTERM and SIGKILL when the cluster ends
	// a box, as for a node that is drained.
	grace = core.DefaultGrace
	// deadlineSlack is how much later than the engine the kubelet ends a box whose time
	// is over: it is there for when no engine is.
	deadlineSlack = 60 * time.Second
	// A box asks for a share of what it may use at most, so that a node holds as many
	// boxes as one machine does, where most of them do nothing most of the time.
	cpuRequest    = 20 // thousandths of a CPU, for each CPU of the limit
	memoryRequest = 4  // the limit divided by this
)

// capabilities are those of a box's init: what it needs to start commands as users of
// the box, and to work on their files. Commands have those of them that a command of a
// box of one machine has.
var capabilities = []corev1.Capability{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

// podName returns the name of the pod of a box that is no spare.
func podName(id string) string { return strings.ReplaceAll(id, "_", "-") }

// kind is what two boxes have in common that can be made of the same spare.
type kind struct {
	Image        string
	CPUs, Memory int
	Disk         int
	Network      string
	Processes    int
	Strict       bool
}

func kindOf(o options.Box) kind {
	return kind{o.Image, o.CPUs, o.MemoryMiB, o.DiskSizeGB, o.Network, o.Processes, o.Seccomp == options.SeccompStrict}
}

// pod returns the pod for a box, or a spare for boxes like it.
func (e *Engine) pod(name string, o options.Box) *corev1.Pod {
	no, root := false, int64(0)
	// Not the name of the pod: a pod of the same name may have gone a moment ago, and its
	// Secret goes some moments later.
	keys := name + "-" + strings.ToLower(rand.Text()[:8])
	hostUsers, graceSeconds := e.config.HostUsers, int64(grace/time.Second)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelSlot: name, labelNetwork: o.Network}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			HostUsers:                     &hostUsers,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &graceSeconds,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: &root, RunAsGroup: &root, RunAsNonRoot: &no,
				SeccompProfile: e.config.seccomp(),
			},
			Containers: []corev1.Container{{
				Name: boxContainer, Image: o.Image, ImagePullPolicy: corev1.PullPolicy(e.config.PullPolicy),
				Command: []string{programDir + "/sandbox-pod", "serve", "-listen", ":" + strconv.Itoa(linkPort), "-grace", grace.String()},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Privileged: &no, ReadOnlyRootFilesystem: &no,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: capabilities},
				},
				// Not a mounted Secret: the root of a box could read that, and can't read this.
				Env:          []corev1.EnvVar{keyFrom(keys, "SANDBOX_POD_CERTIFICATE", fileCert), keyFrom(keys, "SANDBOX_POD_KEY", fileKey), keyFrom(keys, "SANDBOX_POD_CLIENT_CA", fileCA)},
				Resources:    resources(o),
				Ports:        []corev1.ContainerPort{{Name: "link", ContainerPort: linkPort}},
				VolumeMounts: []corev1.VolumeMount{{Name: "program", MountPath: programDir, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{
				{Name: "program", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: e.config.Program, PullPolicy: corev1.PullPolicy(e.config.PullPolicy)}}},
			},
		},
	}
	for _, secret := range e.config.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	if e.config.Installed {
		e.install(pod)
	}
	return pod
}

// seccomp returns the profile that the node loads for boxes.
func (c Config) seccomp() *corev1.SeccompProfile {
	if c.SeccompProfile == "" {
		return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &c.SeccompProfile}
}

// keyFrom returns a variable of process 1 with a member of the pod's Secret.
func keyFrom(secret, variable, member string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: member,
	}}}
}

// install has an init container copy sandbox-pod out of its image.
func (e *Engine) install(pod *corev1.Pod) {
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	install := e.initContainer("install", "install", programDir)
	install.VolumeMounts = []corev1.VolumeMount{{Name: "program", MountPath: programDir}}
	pod.Spec.InitContainers = []corev1.Container{install}
}

// initContainer returns an init container that runs sandbox-pod from its image.
func (e *Engine) initContainer(name string, args ...string) corev1.Container {
	no := false
	return corev1.Container{
		Name: name, Image: e.config.Program, ImagePullPolicy: corev1.PullPolicy(e.config.PullPolicy),
		Command:         append([]string{"/sandbox-pod"}, args...),
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
}

func resources(o options.Box) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{
		Limits: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(o.CPUs), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(o.MemoryMiB)<<20, resource.BinarySI),
		},
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(o.CPUs)*cpuRequest, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(o.MemoryMiB)<<20/memoryRequest, resource.BinarySI),
		},
	}
	if o.DiskSizeGB > 0 {
		disk := *resource.NewQuantity(int64(o.DiskSizeGB)<<30, resource.BinarySI)
		r.Limits[corev1.ResourceEphemeralStorage] = disk
		r.Requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(1<<20, resource.BinarySI)
	}
	return r
}

// become makes the pod that of a box.
func become(pod *corev1.Pod, rec core.Record) {
	delete(pod.Labels, labelSpare)
	pod.Labels[labelBox] = rec.ID
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationRecord] = encode(rec)
}

// secret returns the Secret with the key pair of the init in a pod. It belongs to the
// pod, and goes with it.
func (a *authority) secret(pod *corev1.Pod) (*corev1.Secret, error) {
	cert, key, err := a.issue(pod.Name, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef.Name, Labels: map[string]string{labelSlot: pod.Name}, OwnerReferences: []metav1.OwnerReference{owner(pod)}},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{fileCA: a.pem, fileCert: cert, fileKey: key},
	}, nil
}

func owner(pod *corev1.Pod) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// awaitsKeys reports whether the kubelet says that it does not see the Secret with the
// keys yet, which comes right after the pod. A busy one says the second.
func awaitsKeys(message string) bool {
	return strings.HasPrefix(message, "secret ") || strings.HasPrefix(message, "failed to sync secret cache")
}

func ownerDisk(disk *corev1.PersistentVolumeClaim) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: disk.Name, UID: disk.UID}
}

// problem returns what keeps a pod from running, and whether it may still go away.
func problem(pod *corev1.Pod) (reason, message string, final bool) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Message != "" && !awaitsKeys(w.Message) {
			switch w.Reason {
			case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "ImageInspectError":
				return w.Reason, w.Message, true
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Reason, c.Message, false
		}
	}
	return "", "", false
}
