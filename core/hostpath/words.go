package hostpath

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Explain returns what an error of Open means to the caller who named the path.
// The text follows the name of the member that holds the path.
func Explain(err error, within, path string) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, ErrOutside):
		return fmt.Sprintf("%s leads out of the directory %s", brief(path), within)
	case errors.Is(err, fs.ErrNotExist):
		return brief(path) + " names no file or directory of the host"
	case errors.As(err, &errno): // without the text of the error, which has the path in full
		return fmt.Sprintf("%s can't be opened: %v", brief(path), errno)
	}
	return fmt.Sprintf("%s can't be opened: %v", brief(path), err)
}

// Closed returns the text which says that a box may not have a path, because of
// what it would reach there. Like that of Explain, the text follows the name of
// the member.
func Closed(path, closed string) string {
	return fmt.Sprintf("%s contains %s, or is in it, which is closed to boxes", brief(path), closed)
}

// brief shortens a path that a caller named, so that a message can quote it.
func brief(path string) string {
	const most = 100
	if len(path) <= most {
		return path
	}
	return strings.ToValidUTF8(path[:most], "") + "..."
}
