// Package doctor checks whether the host has what boxes need. Where the
// kernel's own report is not enough, it tries the thing for real. It leaves
// nothing behind: what it mounts is in a mount namespace of its own, which ends
// with the check.
package doctor

import (
	"context"
	"os"

	"sandbox/core/engine"
)

// Check is the result of checking one thing that boxes need.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Required bool   `json:"required"`          // no box runs without it
	Found    string `json:"found,omitempty"`   // what the host has
	Missing  string `json:"missing,omitempty"` // what the host lacks, and the consequence
	Fix      string `json:"fix,omitempty"`     // the command line that mends it
}

// lack is what a look found missing, and how to mend it.
type lack struct{ missing, fix string }

// look checks one thing. It returns what it found, and what is missing, or nil
// if nothing is.
type look func(context.Context, engine.Config) (found string, missing *lack)

// check is one of the checks.
type check struct {
	name     string
	required bool
	look     look
}

// checks are all checks of a host on which root makes boxes, in the order in which it is
// best to mend what they find.
var checks = []check{
	{"root", true, root},
	{"kernel", true, kernel},
	{"user namespaces", true, userNamespaces},
	{"seccomp", true, seccomp},
	{"cgroups", true, cgroups},
	{"home", true, home},
	{"disk", true, disk},
	{"growth", false, growth},
	{"records", false, records},
	{"overlay", true, overlay},
	{"id-mapped mounts", true, idMapped},
	{"programs", true, programs},
	{"network", false, network},
	{"reclaim", false, reclaim},
	{"favordynmods", false, favorDynMods},
}

// Run makes all checks for boxes in c.Home. During a check there may be a
// temporary directory in the home's file system and a short-lived child
// process.
func Run(ctx context.Context, c engine.Config) []Check {
	all := checks
	if os.Geteuid() != 0 {
		all = userChecks
	}
	done := make([]Check, len(all))
	for i, check := range all {
		found, missing := check.look(ctx, c)
		done[i] = Check{Name: check.name, Required: check.required, Found: found, OK: missing == nil}
		if missing != nil {
			done[i].Missing, done[i].Fix = missing.missing, missing.fix
		}
	}
	return done
}

// Fit tells whether boxes can run: nothing that is required is missing.
func Fit(checks []Check) bool {
	for _, c := range checks {
		if c.Required && !c.OK {
			return false
		}
	}
	return true
}
