// Package doctor checks what boxes need of their host. It tries things for
// real where the kernel's word is not enough, and leaves nothing behind: what
// it mounts is never attached to a namespace.
package doctor

import (
	"context"

	"sandbox/core/engine"
)

// Check is one thing that boxes need, and how it stands.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Required bool   `json:"required"`          // without it no box runs
	Found    string `json:"found,omitempty"`   // what is there
	Missing  string `json:"missing,omitempty"` // what is not, and what follows
	Fix      string `json:"fix,omitempty"`     // the line that mends it
}

// lack is what a look found missing.
type lack struct{ missing, fix string }

// look checks one thing: what it found, and nil or what is missing.
type look func(context.Context, engine.Config) (found string, missing *lack)

// checks are all of them, in the order in which they are best mended.
var checks = []struct {
	name     string
	required bool
	look     look
}{
	{"root", true, root},
	{"kernel", true, kernel},
	{"user namespaces", true, userNamespaces},
	{"seccomp", true, seccomp},
	{"cgroups", true, cgroups},
	{"home", true, home},
	{"disk", true, disk},
	{"records", false, records},
	{"overlay", true, overlay},
	{"id-mapped mounts", true, idMapped},
	{"programs", true, programs},
	{"network", false, network},
	{"favordynmods", false, favorDynMods},
}

// Run checks everything for boxes in c.Home. It makes a directory in the home's
// file system for the time of a check and starts a short-lived child.
func Run(ctx context.Context, c engine.Config) []Check {
	done := make([]Check, len(checks))
	for i, check := range checks {
		found, missing := check.look(ctx, c)
		done[i] = Check{Name: check.name, Required: check.required, Found: found, OK: missing == nil}
		if missing != nil {
			done[i].Missing, done[i].Fix = missing.missing, missing.fix
		}
	}
	return done
}

// Fit tells whether nothing that is required is missing.
func Fit(checks []Check) bool {
	for _, c := range checks {
		if c.Required && !c.OK {
			return false
		}
	}
	return true
}
