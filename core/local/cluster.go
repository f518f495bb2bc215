package local

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/spool"
)

// The engines that a home can have.
const (
	EngineHost       = "host"       // boxes of this host
	EngineKubernetes = "kubernetes" // boxes that are pods of a cluster
)

// cluster is the table [kubernetes] of HOME/config.toml; see [kubernetes.Config].
type cluster struct {
	Kubeconfig      string   `toml:"kubeconfig"`
	Namespace       string   `toml:"namespace"`
	Program         string   `toml:"program"`
	Installed       bool     `toml:"installed"`
	Reach           string   `toml:"reach"`
	HostUsers       bool     `toml:"host_users"`
	PullPolicy      string   `toml:"pull_policy"`
	PullSecrets     []string `toml:"pull_secrets"`
	SeccompProfile  string   `toml:"seccomp_profile"`
	ScheduleTimeout int      `toml:"schedule_timeout"` // seconds
	PublishService  string   `toml:"publish_service"`
	DiskClass       string   `toml:"disk_class"`
	DiskSizeGB      int      `toml:"disk_size_gb"` // GiB
	AgentSandbox    string   `toml:"agent_sandbox"`
}

// config returns the settings of the engine: those of given win over those of the file.
func (c cluster) config(given kubernetes.Config, pool int) kubernetes.Config {
	return kubernetes.Config{
		Kubeconfig: cmp.Or(given.Kubeconfig, c.Kubeconfig), Namespace: cmp.Or(given.Namespace, c.Namespace),
		Program: cmp.Or(given.Program, c.Program), Installed: c.Installed, Reach: cmp.Or(given.Reach, c.Reach),
		HostUsers: c.HostUsers, PullPolicy: c.PullPolicy, PullSecrets: c.PullSecrets, SeccompProfile: c.SeccompProfile,
		ScheduleTimeout: cmp.Or(given.ScheduleTimeout, time.Duration(c.ScheduleTimeout)*time.Second), Pool: max(pool, 0),
		PublishService: cmp.Or(given.PublishService, c.PublishService),
		DiskClass:      cmp.Or(given.DiskClass, c.DiskClass), DiskGB: c.DiskSizeGB, HostRoots: given.HostRoots,
		AgentSandbox: cmp.Or(given.AgentSandbox, c.AgentSandbox),
	}
}

// openCluster opens a home whose boxes are pods.
func openCluster(home string, c Config, settings file, sources image.Sources) (*Host, error) {
	pool := 0
	if c.Cached { // pods are kept ready by programs that are there to use them
		pool = settings.Pool
	}
	var e *kubernetes.Engine
	logins := pullSecrets(func(ctx context.Context) ([][]byte, error) { return e.PullSecrets(ctx) })
	sources.Keychain = authn.NewMultiKeychain(sources.Keychain, logins)
	images, err := image.Open(image.Config{Home: home, Unpacker: elsewhere{}, Sources: sources})
	if err != nil {
		return nil, err
	}
	all, config := &registries{aliases: sources.Aliases, look: images.Look}, settings.Kubernetes.config(c.Cluster, pool)
	config.Look = all.Look
	if e, err = kubernetes.Open(config); err != nil {
		return nil, err
	}
	rt := core.New(core.Config{Engine: e, Images: all, Owned: c.Owned, Processes: settings.Limits.Processes, Elsewhere: true})
	return &Host{Runtime: rt, Images: images, Mains: spool.Read(record.OutputDir(home)), Home: home, Changes: e.Changes, Shared: e.Shared}, nil
}

// errElsewhere is the failure of work on images that the nodes of a cluster would do.
func errElsewhere() error {
	return fault.New(fault.Unsupported, "the boxes of this home are pods, whose images the nodes of the cluster pull: push an image to a registry, and name it")
}

// elsewhere unpacks no images.
type elsewhere struct{}

func (elsewhere) Unpack(context.Context, io.Reader, string) error { return errElsewhere() }
func (elsewhere) Flush(context.Context) error                     { return errElsewhere() }
func (elsewhere) Pack(context.Context, string, io.Writer) error   { return errElsewhere() }
