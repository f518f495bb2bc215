package local

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	"sandbox/core/engine"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// file is the content of HOME/config.toml. Every setting may be left out.
type file struct {
	// Aliases are short names for image references. They take precedence over
	// the built-in ones. An empty reference removes a built-in alias.
	Aliases map[string]string `toml:"aliases"`
	// Pull is "missing", the default, with which a create pulls an image that
	// is not in the store, or "never".
	Pull string `toml:"pull"`
	// DiskCeilingGB is the disk size, in GB of 1024 MiB, of a box that asks for
	// none. 0 means that such a box has no limit of its own, so that it may
	// fill the disk of the host.
	DiskCeilingGB int `toml:"disk_ceiling_gb"`
	// DiskFloorMiB is how many MiB of the home's disk stay free: with less than
	// that, no box is made or started. 0 means no floor. If it is left out, the
	// floor is 5 % of the disk or 1 GiB, whichever is less.
	DiskFloorMiB int `toml:"disk_floor_mib"`
	// Pool is how many boxes the shim keeps ready for creates like the last
	// ones: 2 if it is left out, and none if it is 0. -1 is for tests: see
	// [engine.Config].
	Pool int `toml:"pool"`
	// Engine is where the boxes are: [EngineHost], the default, or [EngineKubernetes].
	Engine string `toml:"engine"`
	// Kubernetes has the settings of the cluster.
	Kubernetes cluster `toml:"kubernetes"`
	// Limits hold for each box that is made from now on.
	Limits struct {
		// Processes is how many processes and threads a box may have.
		Processes int `toml:"processes"`
	} `toml:"limits"`
}

// builtin are the aliases that need no configuration.
var builtin = map[string]string{
	"default": "docker.io/library/debian:stable-slim",
	"debian":  "docker.io/library/debian:latest",
	"ubuntu":  "docker.io/library/ubuntu:latest",
	"python":  "docker.io/library/python:slim",
	"node":    "docker.io/library/node:lts-slim",
	"alpine":  "docker.io/library/alpine:latest",
	"busybox": "docker.io/library/busybox:latest",
}

// maxDiskFloorMiB is the largest disk_floor_mib that is accepted: the size of
// the largest disk of a box.
const maxDiskFloorMiB = options.MaxDiskSizeGB << 10

// defaultPool serves who makes boxes one at a time, of two kinds in turns.
const defaultPool = 2

// maxPool is the largest pool that is accepted: a ready box takes up some 2 MB.
const maxPool = 64

// maxProcesses is the largest limits.processes that is accepted: a quarter of the
// most that a kernel can have in all.
const maxProcesses = 1 << 20

// DiskFloor returns the home's disk_floor_mib, in the form of
// [engine.Config].DiskFloorMiB. Errors: Config.
func DiskFloor(home string) (int, error) {
	f, err := readFile(home)
	return f.DiskFloorMiB, err
}

// readFile reads the configuration of a home. Errors: Config.
func readFile(home string) (file, error) {
	f := file{Pull: "missing", DiskFloorMiB: engine.DefaultDiskFloor, Pool: defaultPool}
	f.Limits.Processes = options.DefaultProcesses
	name := filepath.Join(home, "config.toml")
	meta, err := toml.DecodeFile(name, &f)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // a home that is a file is reported by the engine
		return f, nil
	case errors.Is(err, os.ErrPermission), errors.As(err, new(*fs.PathError)):
		return f, fault.Wrap(fault.Config, err, "read the configuration")
	case err != nil:
		return f, fault.Wrap(fault.Config, err, "%s", name)
	}
	var problems []string
	for _, key := range meta.Undecoded() {
		problems = append(problems, fmt.Sprintf("no setting is called %q", key))
	}
	if meta.IsDefined("aliases") && meta.Type("aliases") != "Hash" { // which the decoder accepts
		problems = append(problems, "aliases is not a table")
	}
	if f.Pull != "missing" && f.Pull != "never" {
		problems = append(problems, fmt.Sprintf("pull is %q, want missing or never", f.Pull))
	}
	if f.DiskCeilingGB < 0 || f.DiskCeilingGB > options.MaxDiskSizeGB {
		problems = append(problems, fmt.Sprintf("disk_ceiling_gb is %d, want 0 (none) to %d", f.DiskCeilingGB, options.MaxDiskSizeGB))
	}
	if meta.IsDefined("disk_floor_mib") && (f.DiskFloorMiB < 0 || f.DiskFloorMiB > maxDiskFloorMiB) {
		problems = append(problems, fmt.Sprintf("disk_floor_mib is %d, want 0 (none) to %d", f.DiskFloorMiB, maxDiskFloorMiB))
	}
	if f.Pool < -1 || f.Pool > maxPool {
		problems = append(problems, fmt.Sprintf("pool is %d, want 0 (none) to %d", f.Pool, maxPool))
	}
	if f.Engine != "" && f.Engine != EngineHost && f.Engine != EngineKubernetes {
		problems = append(problems, fmt.Sprintf("engine is %q, want %s or %s", f.Engine, EngineHost, EngineKubernetes))
	}
	if f.Limits.Processes < 1 || f.Limits.Processes > maxProcesses {
		problems = append(problems, fmt.Sprintf("limits.processes is %d, want 1 to %d", f.Limits.Processes, maxProcesses))
	}
	problems = append(problems, checkAliases(f.Aliases)...)
	if len(problems) > 0 {
		return f, fault.New(fault.Config, "%s: %s", name, strings.Join(problems, "; "))
	}
	return f, nil
}

// checkAliases returns what is wrong with the short names.
func checkAliases(aliases map[string]string) (problems []string) {
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if alias == "" || strings.ContainsAny(alias, "/:@") {
			problems = append(problems, fmt.Sprintf("alias %q: want a name without / : @", alias))
		}
	}
	return problems
}

// add adds aliases, which take precedence over those of the file. Errors:
// Config.
func (f *file) add(aliases map[string]string) error {
	if problems := checkAliases(aliases); len(problems) > 0 {
		return fault.New(fault.Config, "%s", strings.Join(problems, "; "))
	}
	if f.Aliases == nil {
		f.Aliases = map[string]string{}
	}
	maps.Copy(f.Aliases, aliases)
	return nil
}

// aliases returns the aliases that are in force. When short names are searched
// for in the user's registries, `default` is the only built-in alias, because
// the others would lead past those registries.
func (f file) aliases(searched bool) map[string]string {
	all := maps.Clone(builtin)
	if searched {
		all = map[string]string{"default": builtin["default"]}
	}
	maps.Copy(all, f.Aliases)
	maps.DeleteFunc(all, func(_, ref string) bool { return ref == "" })
	return all
}
