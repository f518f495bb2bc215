package record

import "path/filepath"

// These bound what is kept of the output of a box's main command: a box may start it again
// for ever, and print for ever. Each run is an exec of its own, so there is a bound on
// both; together a box takes up 320 MiB at most.
const (
	KeptRuns = 5        // the last runs
	KeptRun  = 64 << 20 // bytes of each, as of any exec
)

// OutputDir returns the directory in which the shim of a home keeps what main commands
// print, as a [spool.Store]. All programs on the home read it.
func OutputDir(home string) string { return filepath.Join(home, "output") }
