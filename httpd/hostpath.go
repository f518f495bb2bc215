package httpd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/hostpath"
	"sandbox/core/options"
)

// checkRoots refuses host roots that are not directories, and the root directory. Those of
// other hosts can't be looked at. Errors: Config.
func checkRoots(dirs []string, elsewhere bool) error {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
			return fault.New(fault.Config, "host root %q: want an absolute path, and not /", dir)
		}
		if elsewhere {
			continue
		}
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a directory")
		}
		if err != nil {
			return fault.Wrap(fault.Config, err, "host root %s", dir)
		}
	}
	return nil
}

// checkPaths notes paths of the host that can't be used. It sets, for the others,
// the directory that they must lie in: each start of the box opens them again, and
// checks it again. Those of other hosts are the engine's to check. Errors:
// PermissionDenied, for the first path that r's client may not name.
func (s *Server) checkPaths(r *request, o *options.Box, p *document.Problems) (refused error) {
	if s.Runtime.Elsewhere() {
		return nil
	}
	check := func(field, path string, within *string) {
		if p.Has(field) { // it is no path that could be opened
			return
		}
		var err error
		if *within, err = s.checkPath(r, field, path); err != nil {
			refused = cmp.Or(refused, p.Add(err))
		}
	}
	if o.RootfsPath != "" {
		check("rootfs_path", o.RootfsPath, &o.RootfsWithin)
	}
	for i, v := range o.Volumes {
		if v.HostPath != "" {
			check(fmt.Sprintf("volumes[%d].host_path", i), v.HostPath, &o.Volumes[i].Within)
		}
	}
	return refused
}

// checkPath returns the directory that path must lie in, or "" if it may lie
// anywhere. Errors: PermissionDenied, InvalidArgument, ResourceExhausted.
func (s *Server) checkPath(r *request, field, path string) (within string, err error) {
	if s.bounded(r) {
		if within, err = s.hostRoot(field, path); err != nil {
			return "", err
		}
	}
	f, err := hostpath.Open(within, path)
	switch {
	case errors.Is(err, hostpath.ErrOutside):
		return "", fault.New(fault.PermissionDenied, "%s %s", field, hostpath.Explain(err, within, path))
	case errors.Is(err, os.ErrNotExist):
		return "", document.Invalid(field, "missing", hostpath.Explain(err, within, path))
	case fault.Short(err):
		return "", fault.Disk(err, "open %s", field)
	case err != nil:
		return "", document.Invalid(field, "path", hostpath.Explain(err, within, path))
	}
	defer f.Close()
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "find %s", field)
	}
	for _, closed := range s.Closed {
		if _, in := hostpath.Rel(real, closed); in {
			return "", document.Invalid(field, "closed", hostpath.Closed(path, closed))
		}
	}
	return within, nil
}

// bounded tells whether r's client may name paths in the host roots alone. A user of
// the Unix socket is bounded only if there are host roots: without any, all who may
// use the socket are trusted as its owner is.
func (s *Server) bounded(r *request) bool {
	return r.by != ByFile || len(s.HostRoots) > 0 && !ofOwner(r.Context())
}

// hostRoot returns the host root that path lies in. Errors: PermissionDenied.
func (s *Server) hostRoot(field, path string) (string, error) {
	for _, root := range s.HostRoots {
		if _, in := hostpath.Rel(root, path); in {
			return root, nil
		}
	}
	return "", fault.New(fault.PermissionDenied, "%s %s is in no directory that this server shares with clients (--host-root)", field, brief(path))
}
