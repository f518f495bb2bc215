// Package local is the composition root: it builds a [core.Runtime] from the
// real engine and the real image store of a home. The C library, the command
// line and the daemon start here.
package local

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"

	"sandbox/core"
	"sandbox/core/build"
	"sandbox/core/engine"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
	"sandbox/spool"
)

// Config says which home to use, and how.
type Config struct {
	// Home is the directory that holds all state. "" means SANDBOX_HOME;
	// without that, it is /var/lib/sandbox for root and ~/.sandbox for other
	// users.
	Home string
	// Registries is the contract's registries_json document, or nil.
	Registries []byte
	// HelperDir is the directory of the programs. "" means SANDBOX_HELPER_DIR;
	// without that, the programs are looked for.
	HelperDir string
	// Beside is the directory of the library or program in use. The programs
	// are looked for in and near it. "" means that they are not.
	Beside string
	// Aliases are short names of images. They take precedence over those of the
	// home's configuration.
	Aliases map[string]string
	// Owned ties this process's auto_remove boxes to it; see [core.Config].
	Owned bool
	// Engine is [EngineHost] or [EngineKubernetes]; "" for that of the home's
	// configuration, and without it for the host.
	Engine string
	// Cluster has settings of the engine of a cluster, which win over those of the
	// home's configuration.
	Cluster kubernetes.Config
	// Cached keeps the records in memory, for a process that serves requests
	// for boxes all the time; see [engine.Config].
	Cached bool
}

// Host holds everything that a home offers to this process.
type Host struct {
	*core.Runtime
	Images *image.Store
	Engine *engine.Client // nil if the boxes are elsewhere
	// Changes calls back after boxes have changed, by this process or another.
	Changes func(ctx context.Context, changed func(removed bool)) error
	// Shared returns a place, by its name, where all servers on the same boxes keep what
	// they share; it is nil where there is one server only.
	Shared func(name string) *kubernetes.Shared
	// Mains is what the main commands of the home's boxes print, for reading alone.
	Mains *spool.Store
	Home  string
}

// Open checks the home, its configuration and the programs. It starts nothing.
// Errors: Config, Storage, Engine (a shim is missing; the message names every
// place that was tried), Unsupported.
func Open(c Config) (*Host, error) {
	home, err := Home(c.Home)
	if err != nil {
		return nil, err
	}
	registries, err := options.DecodeRegistries(c.Registries)
	if err != nil {
		return nil, err
	}
	if c.HelperDir == "" {
		c.HelperDir = os.Getenv("SANDBOX_HELPER_DIR")
	}
	settings, err := readFile(home)
	if err != nil {
		return nil, err
	}
	if err := settings.add(c.Aliases); err != nil {
		return nil, err
	}
	sources := image.Sources{
		Registries: registries, Aliases: settings.aliases(len(registries) > 0), Never: settings.Pull == "never",
		// The settings of docker and podman count here too: credentials in
		// ~/.docker/config.json, and a proxy in the environment.
		Keychain: authn.DefaultKeychain, Proxy: http.ProxyFromEnvironment,
	}
	switch cmp.Or(c.Engine, settings.Engine, EngineHost) {
	case EngineKubernetes:
		return openCluster(home, c, settings, sources)
	case EngineHost:
		return openHost(home, c, settings, sources)
	}
	return nil, fault.New(fault.Config, "engine is %q, want %s or %s", cmp.Or(c.Engine, settings.Engine), EngineHost, EngineKubernetes)
}

// openHost opens a home whose boxes are on this host.
func openHost(home string, c Config, settings file, sources image.Sources) (*Host, error) {
	e, err := engine.Open(engine.Config{
		Home: home, Beside: c.Beside, HelperDir: c.HelperDir, Cached: c.Cached, DiskFloorMiB: settings.DiskFloorMiB, Pool: settings.Pool,
	})
	if err != nil {
		return nil, err
	}
	images, err := image.Open(image.Config{Home: home, Unpacker: e, InUse: e.Images, Sources: sources, Discard: e.Discard, Room: e.Room})
	if err != nil {
		return nil, err
	}
	rt := core.New(core.Config{Engine: e, Images: images, Owned: c.Owned, DiskCeilingGB: settings.DiskCeilingGB, Processes: settings.Limits.Processes})
	return &Host{Runtime: rt, Images: images, Engine: e, Changes: e.Changes, Mains: spool.Read(record.OutputDir(home)), Home: home}, nil
}

// Home returns the absolute path of the home that dir names; see [Config].
func Home(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv("SANDBOX_HOME")
	}
	if dir == "" && os.Geteuid() == 0 {
		dir = "/var/lib/sandbox"
	}
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", fault.Wrap(fault.Config, err, "no home: set SANDBOX_HOME")
		}
		dir = filepath.Join(user, ".sandbox")
	}
	abs, err := filepath.Abs(dir)
	return abs, fault.Wrap(fault.Config, err, "home %q", dir)
}

// Builder returns what makes images of recipes.
func (h *Host) Builder() *build.Builder { return &build.Builder{Runtime: h.Runtime, Images: h.Images} }
