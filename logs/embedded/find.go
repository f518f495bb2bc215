package embedded

import (
	"os"
	"path/filepath"
	"strings"

	"sandbox/core/fault"
	"sandbox/core/programs"
)

// Names of the child program and of the library that it loads.
const (
	program = "sandbox-logs"
	library = "libchdb.so"
)

// find returns the paths of the child program and of the library.
func (o Options) find() (child, lib string, err error) {
	dir, err := programs.Find(o.HelperDir, o.Beside, program)
	if err != nil {
		return "", "", err
	}
	if child, err = filepath.Abs(filepath.Join(dir, program)); err != nil {
		return "", "", fault.Wrap(fault.Internal, err, "find %s", program)
	}
	lib, err = o.findLibrary(dir)
	return child, lib, err
}

// findLibrary returns the path of the library. If the options name one, it
// looks only there. Otherwise it looks in lib/ beside the programs, where a
// build puts it, and where `make install` puts it.
func (o Options) findLibrary(programs string) (string, error) {
	places := []string{filepath.Join(programs, "lib", library), filepath.Join(programs, "..", "..", "lib", "sandbox", library)}
	if o.Library != "" {
		places = []string{o.Library}
	}
	for _, place := range places {
		// A rule of Landlock applies to a file, and not to a link to it.
		if real, err := filepath.EvalSymlinks(place); err == nil {
			if st, err := os.Stat(real); err == nil && st.Mode().IsRegular() {
				return filepath.Abs(real)
			}
		}
	}
	return "", fault.New(fault.Unavailable, "no %s, the embedded log engine, at %s: fetch it with make deps-logs, "+
		"set SANDBOX_CHDB_LIB to its path, or use a ClickHouse server", library, strings.Join(places, ", "))
}
