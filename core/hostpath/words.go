package hostpath

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Explain says what an error of Open means to whoever named the path. The text
// goes into a message behind the name of the member that holds the path.
func Explain(err error, within, path string) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, ErrOutside):
		return fmt.Sprintf("%s leads out of the directory %s", brief(path), within)
	case errors.Is(err, fs.ErrNotExist):
		return brief(path) + " names no file or directory of the host"
	case errors.As(err, &errno): // without the path, which the error has in full
		return fmt.Sprintf("%s can't be opened: %v", brief(path), errno)
	}
	return fmt.Sprintf("%s can't be opened: %v", brief(path), err)
}

// Closed says that a box may not have a path because of what it would reach
// there. The text goes behind the name of the member, as that of Explain.
func Closed(path, closed string) string {
	return fmt.Sprintf("%s holds %s, or lies in it, which is closed to boxes", brief(path), closed)
}

// brief shortens a path that a caller named, so that a message can quote it.
func brief(path string) string {
	const most = 100
	if len(path) <= most {
		return path
	}
	return strings.ToValidUTF8(path[:most], "") + "..."
}
