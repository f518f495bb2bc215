package local

import (
	"cmp"
	"context"
	"io"
	"time"

	"sandbox/api"
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
	}
}

// openCluster opens a home whose boxes are pods.
func openCluster(home string, c Config, settings file, sources image.Sources) (*Host, error) {
	pool := 0
	if c.Cached { // pods are kept ready by programs that are there to use them
		pool = settings.Pool
	}
	e, err := kubernetes.Open(settings.Kubernetes.config(c.Cluster, pool))
	if err != nil {
		return nil, err
	}
	images, err := image.Open(image.Config{Home: home, Unpacker: elsewhere{}, Sources: sources})
	if err != nil {
		return nil, err
	}
	rt := core.New(core.Config{Engine: e, Images: named(sources.Aliases), Owned: c.Owned, Processes: settings.Limits.Processes, Elsewhere: true})
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

// named are the images of a cluster, with short names for some. It implements
// [core.Images].
type named map[string]string

// Resolve returns the image as the nodes find it: nobody knows more before a box runs.
func (n named) Resolve(_ context.Context, ref string) (core.Image, error) {
	return core.Image{Ref: cmp.Or(n[ref], ref)}, nil
}

// Command is refused.
func (named) Command(context.Context, string) ([]string, error) {
	return nil, fault.New(fault.Unsupported, "the command of an image is not known here, since the nodes of the cluster have the image: name the command")
}

// Snapshot is refused.
func (named) Snapshot(context.Context, core.SnapshotRequest, func(string) (core.Image, error)) (api.Image, error) {
	return api.Image{}, errElsewhere()
}

// Snapshots returns none.
func (named) Snapshots(context.Context) ([]api.SnapshotNode, error) {
	return []api.SnapshotNode{}, nil
}

// Stack is refused.
func (named) Stack(string) (api.Image, []string, error) { return api.Image{}, nil, errElsewhere() }

// Remove is refused.
func (named) Remove(context.Context, string, bool) error { return errElsewhere() }
