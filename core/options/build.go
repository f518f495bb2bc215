package options

import (
	"time"

	"sandbox/core/fault"
)

// Build is a build of an image, as a program of this host asks for it.
type Build struct {
	Context    string // a directory of the host; "" for no files
	Recipe     *string
	RecipePath string // a file of the host; "" for the Dockerfile of the context
	Name       string // of the image; "" for one that is made of its id
	Target     string // the stage that becomes the image; "" for the last one
	Args       map[string]string
	NoCache    bool
	NoNetwork  bool
	Timeout    time.Duration // of the command of each RUN; 0 for the default
	CPUs       int           // of each box; 0 for the default of boxes
	MemoryMiB  int           // the same
}

// buildDocument is the document of a build.
type buildDocument struct {
	Context    *string            `json:"context"`
	Recipe     *string            `json:"recipe"`
	RecipePath *string            `json:"recipe_path"`
	Name       *string            `json:"name"`
	Target     *string            `json:"target"`
	Args       *map[string]string `json:"args"`
	NoCache    *bool              `json:"no_cache"`
	NoNetwork  *bool              `json:"no_network"`
	TimeoutMS  *int               `json:"timeout_ms"`
	CPUs       *int               `json:"cpus"`
	MemoryMiB  *int               `json:"memory_mib"`
}

// DecodeBuild reads the document of a build, as strictly as [Decode]. Errors: Malformed
// and InvalidArgument, with fields.
func DecodeBuild(doc []byte) (Build, error) {
	var d buildDocument
	var p problems
	if err := p.Read(doc, &d, MaxCommand); err != nil {
		return Build{}, err
	}
	b := Build{
		Context: or(d.Context, ""), Recipe: d.Recipe, RecipePath: or(d.RecipePath, ""), Name: or(d.Name, ""), Target: or(d.Target, ""),
		Args: or(d.Args, nil), NoCache: or(d.NoCache, false), NoNetwork: or(d.NoNetwork, false), CPUs: or(d.CPUs, 0), MemoryMiB: or(d.MemoryMiB, 0),
	}
	p.When(b.Recipe != nil && b.RecipePath != "", "recipe_path", "value", "must be left out beside recipe")
	p.When(b.Recipe == nil && b.RecipePath == "" && b.Context == "", "recipe", "required", "is missing: give it, recipe_path or context")
	for name, n := range map[string]struct {
		given     *int
		low, high int
	}{"timeout_ms": {d.TimeoutMS, 1, MaxTTLSeconds * 1000}, "cpus": {d.CPUs, 1, 1 << 20}, "memory_mib": {d.MemoryMiB, MinMemoryMiB, 1 << 30}} {
		if n.given != nil {
			p.Within(name, *n.given, n.low, n.high)
		}
	}
	b.Timeout = time.Duration(or(d.TimeoutMS, 0)) * time.Millisecond
	return b, p.Err(fault.InvalidArgument)
}
