package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sandbox/core"
	"sandbox/core/fault"
)

// The ways to reach the init of a box.
const (
	ReachDirect  = "direct"  // by the address of its pod
	ReachForward = "forward" // through the API server, as `kubectl port-forward` does
)

// The Services that publish ports of boxes.
const (
	PublishNodePort     = string(corev1.ServiceTypeNodePort)     // on a port of each node
	PublishLoadBalancer = string(corev1.ServiceTypeLoadBalancer) // at an address of its own
)

// What is done where the cluster has kubernetes-sigs/agent-sandbox.
const (
	AgentSandboxAuto = "auto" // its SandboxWarmPool keeps the pods ready, and SandboxClaims take them
	AgentSandboxOff  = "off"  // nothing else than elsewhere
)

// DefaultScheduleTimeout is how long a create waits for a node that has room.
const DefaultScheduleTimeout = time.Minute

// Config says which cluster holds the boxes, and how they are made there.
type Config struct {
	// Kubeconfig is the path of the file that names the cluster and the user. "" means
	// what KUBECONFIG names, else ~/.kube/config, else, inside a pod, its service
	// account.
	Kubeconfig string
	// Namespace holds the pods. "" means that of the kubeconfig or of the pod.
	Namespace string
	// Program is the image that has sandbox-pod.
	Program string
	// Installed says that the cluster has no image volumes: an init container copies
	// sandbox-pod out of Program, which costs a second a box.
	Installed bool
	// Reach is [ReachDirect], [ReachForward], or "" for direct inside the cluster and
	// forward outside.
	Reach string
	// HostUsers gives boxes the user ids of the node, for a cluster whose nodes have no
	// user namespaces for pods.
	HostUsers bool
	// PullPolicy is the imagePullPolicy of a box's image; "" for the cluster's default.
	PullPolicy string
	// PullSecrets are the names of Secrets of the namespace with which images are pulled.
	PullSecrets []string
	// SeccompProfile is a file below the directory of seccomp profiles of each node's
	// kubelet, which is loaded for boxes; "" for the runtime's own profile. The filter of
	// the box's init comes on top in any case.
	SeccompProfile string
	// ScheduleTimeout is how long a create waits for a node that has room; 0 for
	// [DefaultScheduleTimeout].
	ScheduleTimeout time.Duration
	// PublishService is how ports of boxes are published: [PublishNodePort],
	// [PublishLoadBalancer], or "" for not at all.
	PublishService string
	// HostRoots are the directories of the nodes in which boxes may have volumes with a
	// host path. They are absolute, and none is the root directory. If there is none, no
	// box has such a volume.
	HostRoots []string
	// DiskClass is the storage class of the claims in which boxes keep their disks while
	// they are stopped. "" means that they have none, and can't be stopped.
	DiskClass string
	// DiskGB is the size of the disk of a box that asks for none, in GiB; 0 for
	// [DefaultDiskGB]. It counts where there is a DiskClass.
	DiskGB int
	// Look returns what an image says of itself at its registry. References have a digest.
	// nil means that nobody can ask.
	Look func(ctx context.Context, ref string) (core.Image, error)
	// Pool is how many pods are kept ready for boxes like the last one; 0 for none.
	Pool int
	// AgentSandbox is [AgentSandboxAuto], the default, or [AgentSandboxOff]. It counts
	// where there is a Pool.
	AgentSandbox string
}

func (c Config) scheduleTimeout() time.Duration {
	return cmp.Or(c.ScheduleTimeout, DefaultScheduleTimeout)
}

// connection is how to speak with the API server.
type connection struct {
	rest      *rest.Config
	namespace string
	inside    bool // of the cluster
}

// connect reads the configuration of the cluster. It sends nothing. Errors: Config.
func (c Config) connect() (connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if errors.Is(err, rest.ErrNotInCluster) || clientcmd.IsEmptyConfig(err) {
		return connection{}, fault.New(fault.Config, "no cluster is named: give --kubeconfig, set KUBECONFIG, or run inside the cluster")
	}
	if err != nil {
		return connection{}, fault.Wrap(fault.Config, err, "read the kubeconfig")
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return connection{}, fault.Wrap(fault.Config, err, "read the namespace of the kubeconfig")
	}
	if c.Namespace != "" {
		namespace = c.Namespace
	}
	// The defaults, 5 requests a second, are for tools that a person runs.
	config.QPS, config.Burst = 200, 400
	config.UserAgent = "sandbox"
	// A list of pods is smaller and faster read as protobuf.
	config.AcceptContentTypes, config.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	return connection{rest: config, namespace: namespace, inside: insideCluster(config)}, nil
}

// insideCluster reports whether the configuration is that of a pod's service account.
func insideCluster(config *rest.Config) bool {
	own, err := rest.InClusterConfig()
	return err == nil && own.Host == config.Host
}

func (c Config) check() error {
	if c.Program == "" {
		return fault.New(fault.Config, "the image that has sandbox-pod is not named: set kubernetes.program")
	}
	if c.DiskClass != "" && c.Installed {
		return fault.New(fault.Config, "disks of boxes (kubernetes.disk_class) need image volumes: unset kubernetes.installed")
	}
	if c.DiskGB < 0 {
		return fault.New(fault.Config, "kubernetes.disk_size_gb is %d, want at least 1", c.DiskGB)
	}
	switch c.Reach {
	case "", ReachDirect, ReachForward:
	default:
		return fault.New(fault.Config, "%s", fmt.Sprintf("kubernetes.reach is %q, want direct or forward", c.Reach))
	}
	switch c.AgentSandbox {
	case "", AgentSandboxAuto, AgentSandboxOff:
	default:
		return fault.New(fault.Config, "kubernetes.agent_sandbox is %q, want %s or %s", c.AgentSandbox, AgentSandboxAuto, AgentSandboxOff)
	}
	switch c.PublishService {
	case "", PublishNodePort, PublishLoadBalancer:
	default:
		return fault.New(fault.Config, "kubernetes.publish_service is %q, want %s or %s", c.PublishService, PublishNodePort, PublishLoadBalancer)
	}
	return nil
}
