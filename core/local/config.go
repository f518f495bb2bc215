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

// file is what stands in HOME/config.toml. All of it may be left out.
type file struct {
	// Aliases are short names for image references, over the built-in ones.
	// An empty reference takes a built-in alias away.
	Aliases map[string]string `toml:"aliases"`
	// Pull is "missing" (a create pulls what is not in the store, the
	// default) or "never".
	Pull string `toml:"pull"`
	// DiskCeilingGB is the disk of a box that asks for no size. 0: none of
	// its own, so that it may fill the host's.
	DiskCeilingGB int `toml:"disk_ceiling_gb"`
	// DiskFloorMiB is how much of the home's disk stays free: below it no
	// box is made or started. 0: none. Left out: 5 % or 1 GiB, whichever is
	// less.
	DiskFloorMiB int `toml:"disk_floor_mib"`
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

// maxDiskFloorMiB is the largest disk of a box.
const maxDiskFloorMiB = options.MaxDiskSizeGB << 10

// DiskFloor returns the home's disk_floor_mib, as [engine.Config] has it. Errors:
// Config.
func DiskFloor(home string) (int, error) {
	f, err := readFile(home)
	return f.DiskFloorMiB, err
}

// readFile reads the configuration of a home. Errors: Config.
func readFile(home string) (file, error) {
	f := file{Pull: "missing", DiskFloorMiB: engine.DefaultDiskFloor}
	name := filepath.Join(home, "config.toml")
	meta, err := toml.DecodeFile(name, &f)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // of a home that is a file the engine tells
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
	if meta.IsDefined("aliases") && meta.Type("aliases") != "Hash" { // which the decoder lets pass
		problems = append(problems, "aliases is no table")
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
	problems = append(problems, checkAliases(f.Aliases)...)
	if len(problems) > 0 {
		return f, fault.New(fault.Config, "%s: %s", name, strings.Join(problems, "; "))
	}
	return f, nil
}

// checkAliases says what is wrong with short names.
func checkAliases(aliases map[string]string) (problems []string) {
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if alias == "" || strings.ContainsAny(alias, "/:@") {
			problems = append(problems, fmt.Sprintf("alias %q: want a name without / : @", alias))
		}
	}
	return problems
}

// add puts more aliases over those of the file. Errors: Config.
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

// aliases returns the table in force. Where short names are searched for at the
// user's registries the built-in ones would lead past these: only `default`
// is left.
func (f file) aliases(searched bool) map[string]string {
	all := maps.Clone(builtin)
	if searched {
		all = map[string]string{"default": builtin["default"]}
	}
	maps.Copy(all, f.Aliases)
	maps.DeleteFunc(all, func(_, ref string) bool { return ref == "" })
	return all
}
