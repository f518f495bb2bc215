// Package hostcopy copies files and directories between this host and a box, as
// cp does: the command line and the C library share it. The box is hostile: what
// comes out of it is never written outside of where it was to go.
package hostcopy

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// Box is what a copy needs of a running box. A [core.Box] has it.
type Box interface {
	Upload(ctx context.Context, u core.Upload, content io.Reader) (api.Uploaded, error)
	Download(ctx context.Context, path string, asTar bool) (*core.Download, error)
}

// Progress is told after each piece how many bytes have passed. A directory
// passes as a tar, whose headers count.
type Progress func(done int64)

// In copies a file or a directory of this host into a box. It goes into dest if
// dest is a directory or ends in "/", and becomes dest otherwise. Modes are kept;
// the box's root owns what is made. progress may be nil. Errors: FileNotFound,
// PermissionDenied and InvalidArgument (of this host's path), and those of
// [core.Files].
func In(ctx context.Context, box Box, from, dest string, progress Progress) (api.Uploaded, error) {
	st, err := os.Stat(from)
	if err != nil {
		return api.Uploaded{}, hostFailure(err)
	}
	if st.IsDir() {
		return dirIn(ctx, box, from, dest, progress)
	}
	if !st.Mode().IsRegular() {
		return api.Uploaded{}, fault.New(fault.InvalidArgument, "%s is neither a file nor a directory", from)
	}
	f, err := os.Open(from)
	if err != nil {
		return api.Uploaded{}, hostFailure(err)
	}
	defer f.Close()
	mode := int(st.Mode().Perm())
	return box.Upload(ctx, core.Upload{Dest: dest, Name: filepath.Base(from), Mode: &mode}, progress.of(f))
}

// dirIn copies a directory into a box, as a tar.
func dirIn(ctx context.Context, box Box, from, dest string, progress Progress) (api.Uploaded, error) {
	abs, err := filepath.Abs(from) // "." and ".." have a name too
	if err != nil {
		return api.Uploaded{}, hostFailure(err)
	}
	name := filepath.Base(abs)
	into, err := isDir(ctx, box, dest)
	if err != nil {
		return api.Uploaded{}, err
	}
	if into || strings.HasSuffix(dest, "/") {
		dest = path.Join(dest, name)
	}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(pack(w, from)) }()
	made, err := box.Upload(ctx, core.Upload{Dest: dest, Name: name + ".tar", Tar: true}, progress.of(r))
	_ = r.CloseWithError(io.ErrClosedPipe) // ends pack, in case the upload stopped early
	return made, err
}

// isDir reports whether a path of a box is a directory.
func isDir(ctx context.Context, box Box, name string) (bool, error) {
	d, err := box.Download(ctx, name, false)
	switch {
	case err == nil:
		return false, d.Close()
	case fault.Is(err, fault.IsDirectory):
		return true, nil
	case fault.Is(err, fault.FileNotFound), fault.Is(err, fault.InvalidArgument):
		return false, nil
	}
	return false, err
}

// Out copies a file or a directory of a box to this host, and returns the path of
// what it made. It goes into dest if dest is a directory or ends in "/", and
// becomes dest otherwise. Modes are kept but for set-user-id and set-group-id and
// what the umask forbids; this process's user owns what is made; devices, FIFOs
// and sockets are left out. progress may be nil. Errors: as [In].
func Out(ctx context.Context, box Box, from, dest string, progress Progress) (string, error) {
	d, err := box.Download(ctx, from, true)
	if err != nil {
		return "", err
	}
	defer d.Close()
	return unpack(progress.of(d), dest)
}

// of returns r, or a reader of r that tells how much was read.
func (p Progress) of(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return &counting{r: r, tell: p}
}

// counting is a reader that tells how much was read.
type counting struct {
	r    io.Reader
	done int64
	tell Progress
}

// Read reads from the reader beneath.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if n > 0 {
		c.done += int64(n)
		c.tell(c.done)
	}
	return n, err
}
