package layer

import (
	"archive/tar"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// clean returns the plain form of a tar's name, without "./", a slash at the
// end and doubled slashes; the root itself is ".". If the name is refused,
// problem says why.
func clean(name string) (cleaned, problem string) {
	if problem := unusable(name); problem != "" {
		return "", problem
	}
	if name[0] == '/' {
		return "", "an absolute name"
	}
	if plain(name) {
		return name, ""
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", "a name with .. in it"
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return ".", ""
	}
	return strings.Join(parts, "/"), ""
}

// plain reports, by a cheap test, whether a name is clean as it is.
func plain(name string) bool {
	return name[0] != '.' && !strings.Contains(name, "/.") && !strings.Contains(name, "//") && name[len(name)-1] != '/'
}

// unusable returns why a string can't be a path, or "" if it can.
func unusable(path string) string {
	switch {
	case path == "":
		return "an empty name"
	case len(path) >= unix.PathMax:
		return fmt.Sprintf("a name of %d bytes", len(path))
	case strings.IndexByte(path, 0) >= 0:
		return "a name with a NUL byte in it"
	}
	return ""
}

// deviceOfDev reports whether an entry is a device below /dev, as every
// bootstrapped system has some. Such entries are left out, because a box gets a
// /dev of its own.
func deviceOfDev(h *tar.Header, name string) bool {
	device := h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock
	return device && strings.HasPrefix(name, "dev/")
}

// refused returns the error for a hostile entry.
func refused(name, format string, args ...any) error {
	return fault.New(fault.Image, "refused tar entry %s: %s", quote(name), fmt.Sprintf(format, args...))
}

// failed classifies the error of making an entry. Some errors are the disk's
// fault; the others are the tar's, because its names and links can be anything.
func failed(name string, err error) error {
	switch {
	case fault.Classified(err):
		return err
	case errors.Is(err, unix.EXDEV):
		return refused(name, "its path leads through a symlink out of the layer")
	}
	if _, ours := fault.Host(err); ours {
		return fault.Disk(err, "unpack %s", quote(name))
	}
	return fault.Wrap(fault.Image, err, "tar entry %s can't be made", quote(name))
}

// quote makes a name from a tar safe to show: printable, and shortened if it is
// long.
func quote(name string) string {
	const enough = 120
	if len(name) > enough {
		return fmt.Sprintf("%q...", name[:enough])
	}
	return fmt.Sprintf("%q", name)
}
