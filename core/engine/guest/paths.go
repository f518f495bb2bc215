package guest

import (
	"errors"
	"fmt"

	"sandbox/core/engine/wire"
	"sandbox/core/hostpath"
)

// CheckPaths looks whether the paths that a box shall see are there: triples of the member
// that names a path, the directory that it must lie in, and the path itself. An init
// container does so, which has those directories, before the kubelet would make what is
// missing. The error says which one can't be used, and why.
func CheckPaths(args []string) error {
	for ; len(args) >= 3; args = args[3:] {
		if err := checkPath(args[1], args[2]); err != nil {
			said := fmt.Sprintf("%s %s", args[0], hostpath.Explain(err, args[1], args[2]))
			if errors.Is(err, hostpath.ErrOutside) {
				return errors.New(wire.PathOutside + said)
			}
			return errors.New(wire.PathUnusable + said)
		}
	}
	return nil
}

func checkPath(within, path string) error {
	f, err := hostpath.Open(within, path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = errors.New("it is neither a directory nor a file")
	}
	return err
}
