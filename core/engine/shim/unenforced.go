package shim

import (
	"os"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// A user who is not root may have been given no cgroups. A box that allows it runs without
// then: its init watches the memory of its commands and gives them resource limits, which
// holds back programs that are careless, but not all that are hostile.

// checkEnforced refuses a box whose limits could not be enforced and that does not allow it.
func checkEnforced(o options.Box) error {
	if noGroups == "" || o.AllowUnenforcedLimits {
		return nil
	}
	return fault.New(fault.Unsupported, "%s; or give the box the option allow_unenforced_limits", noGroups)
}

// checkFreezable refuses to have a box stand still that has no cgroups.
func checkFreezable() error {
	if noGroups == "" {
		return nil
	}
	return fault.New(fault.Unsupported, "a box without cgroups can't stand still, for a pause or a snapshot while it runs: stop it first, or: %s", noGroups)
}

// unenforced returns the limits that init is to watch over, or nil where cgroups do.
func unenforced(o options.Box) *wire.Watched {
	if noGroups == "" {
		return nil
	}
	return &wire.Watched{MemoryBytes: int64(o.MemoryMiB) << 20, Processes: maxTasks(o)}
}

func noFiles() ([]*os.File, error) {
	tree, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	kills, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = tree.Close()
		return nil, err
	}
	return []*os.File{tree, kills}, nil
}
