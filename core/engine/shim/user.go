package shim

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"sandbox/core/engine/rootless"
	"sandbox/core/engine/shim/namespaces"
	"sandbox/core/engine/shim/network"
)

// asUser says that this shim is that of a user who is not root of the host. It is root of
// a user namespace, in which the ids 0 to 65,535 are mapped: 0 to the user, the others to
// ids that are the user's too. All boxes of the home have these ids, and so do the layers
// on disk, since only root of the host may map the ids of a mount. Where the user has no
// such ids, 0 is mapped alone: see oneID.
var asUser bool

// userGroups are the directories of cgroups that the user was given, by the name of the
// hierarchy. noGroups tells why there are none, and is "" where there are: see checkEnforced.
var (
	userGroups rootless.Groups
	noGroups   string
)

// takeGiven notes what root has given to the user.
func takeGiven(log *slog.Logger) error {
	given, err := namespaces.Found()
	if err != nil {
		return err
	}
	takeIDs(given, log)
	return takeGivenGroups(given)
}

// takeGivenGroups makes the directories that the user was given the roots of the
// hierarchies, for this process.
func takeGivenGroups(given namespaces.Given) error {
	if userGroups, noGroups = given.Groups, given.Why; noGroups != "" {
		namesOnce.Store(&[]string{})
		return nil
	}
	if cgroups.IsCgroup2UnifiedMode() {
		return bindGroup(userGroups[""], hostGroups)
	}
	if err := os.Mkdir(ourGroups, 0o700); err != nil {
		return err
	}
	var names []string
	for name, dir := range userGroups {
		at := filepath.Join(ourGroups, name)
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		if err := bindGroup(dir, at); err != nil {
			return err
		}
		names = append(names, name)
	}
	namesOnce.Store(&names)
	return nil
}

func bindGroup(dir, at string) error {
	if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the cgroup %s: %w", dir, err)
	}
	return nil
}

// inGiven returns where a group of the v1 hierarchy of a controller is below groupRoot:
// path is what /proc says of it.
func inGiven(controller, path string) string {
	if given, ok := userGroups[controller]; ok {
		return strings.TrimPrefix(path, strings.TrimPrefix(given, filepath.Join(hostGroups, controller)))
	}
	return path
}

// idMappings returns the mappings of a box whose range of ids begins at base. In a user
// namespace each has to lie in one mapping of that, which are in a file of this process.
func idMappings(file string, base int) ([]specs.LinuxIDMapping, error) {
	if !asUser {
		return []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(base), Size: idsPerBox}}, nil //nolint:gosec // an id
	}
	f, err := os.Open("/proc/self/" + file)
	if err != nil {
		return nil, fmt.Errorf("read the ids of the user namespace: %w", err)
	}
	defer f.Close()
	var all []specs.LinuxIDMapping
	for {
		var inside, outside, size uint32
		if _, err := fmt.Fscan(f, &inside, &outside, &size); err != nil {
			return all, nil
		}
		all = append(all, specs.LinuxIDMapping{ContainerID: inside, HostID: inside, Size: size})
	}
}

// hostNetwork returns what connects boxes to the host's network, and what to call at the
// end.
func hostNetwork(home string, log *slog.Logger) (*network.Host, func() error, error) {
	if !asUser {
		return &network.Host{}, func() error { return nil }, nil
	}
	outside, err := namespaces.Dial(home, func() {
		// Boxes live on, as when a shim is killed, and the next shim has another
		// process outside, which this one can't start from here.
		log.Error("the process outside has ended, and the shim ends")
		os.Exit(1)
	})
	if err != nil {
		return nil, nil, err
	}
	return &network.Host{Outside: outside, Dir: filepath.Join(home, "engine")}, outside.Leave, nil
}
