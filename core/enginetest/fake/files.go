package fake

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Upload writes to the host's own file system, as the commands of this engine
// do.
func (e *Engine) Upload(_ context.Context, boxID string, u core.Upload, content io.Reader) (api.Uploaded, error) {
	if err := e.running(boxID); err != nil {
		return api.Uploaded{}, err
	}
	if !filepath.IsAbs(u.Dest) {
		return api.Uploaded{}, fault.New(fault.InvalidArgument, "dest %q must be an absolute path", u.Dest)
	}
	if u.Tar {
		return untar(u.Dest, tar.NewReader(content))
	}
	dest := filepath.Clean(u.Dest)
	if st, err := os.Stat(dest); strings.HasSuffix(u.Dest, "/") || err == nil && st.IsDir() {
		if u.Name == "" || u.Name == ".." || u.Name == "." || strings.ContainsAny(u.Name, "/\x00") {
			return api.Uploaded{}, fault.New(fault.InvalidArgument, "%q can't be the name of a file", u.Name)
		}
		dest = filepath.Join(dest, u.Name)
	}
	mode := 0o644
	if st, err := os.Lstat(dest); err == nil {
		if !st.Mode().IsRegular() && st.Mode().Type() != fs.ModeSymlink {
			return api.Uploaded{}, fault.New(fault.InvalidArgument, "%s is no file that can be replaced", dest)
		}
		if st.Mode().IsRegular() {
			mode = int(st.Mode().Perm())
		}
	}
	if u.Mode != nil {
		mode = *u.Mode
	}
	n, err := replace(dest, content, func() uint32 {
		if u.LateMode != nil {
			if late := u.LateMode(); late != nil {
				mode = *late
			}
		}
		return uint32(mode)
	})
	return api.Uploaded{Dest: dest, Size: n}, err
}

func replace(dest string, content io.Reader, mode func() uint32) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return 0, problem(err)
	}
	f, err := os.CreateTemp(filepath.Dir(dest), ".upload-")
	if err != nil {
		return 0, problem(err)
	}
	n, err := io.Copy(f, content)
	if err == nil {
		err = problem(errors.Join(syscall.Fchmod(int(f.Fd()), mode()), os.Rename(f.Name(), dest)))
	}
	_ = f.Close()
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return n, err
}

func untar(dest string, tr *tar.Reader) (api.Uploaded, error) {
	done := api.Uploaded{Dest: filepath.Clean(dest)}
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, fault.Wrap(fault.InvalidArgument, err, "read the tar")
		}
		name := filepath.Join(dest, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = problem(os.MkdirAll(name, fs.FileMode(h.Mode)))
		case tar.TypeSymlink:
			err = problem(os.Symlink(h.Linkname, name))
		default:
			var n int64
			n, err = replace(name, tr, func() uint32 { return uint32(h.Mode) })
			done.Size += n
		}
		if err != nil {
			return done, err
		}
	}
}

// Download reads from the host's own file system.
func (e *Engine) Download(_ context.Context, boxID string, o options.Download) (*core.Download, error) {
	path := o.Path
	if err := e.running(boxID); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(path) {
		return nil, fault.New(fault.InvalidArgument, "path %q must be absolute", path)
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fault.New(fault.FileNotFound, "%s: no such file", path)
	case err != nil:
		return nil, problem(err)
	case o.Tar:
		return archive(path), nil
	case st.IsDir():
		return nil, fault.New(fault.IsDirectory, "%s is a directory", path)
	case !st.Mode().IsRegular() || strings.HasPrefix(path, "/proc/"):
		return nil, fault.New(fault.InvalidArgument, "%s is not a regular file", path)
	}
	f, err := os.Open(path)
	return &core.Download{ReadCloser: f, Name: filepath.Base(path), Size: st.Size()}, problem(err)
}

func archive(path string) *core.Download {
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		err := filepath.Walk(path, func(name string, st fs.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return add(tw, filepath.Dir(path), name, st)
		})
		_ = w.CloseWithError(errors.Join(err, tw.Close()))
	}()
	return &core.Download{ReadCloser: r, Name: filepath.Base(path), Size: -1}
}

func add(tw *tar.Writer, parent, name string, st fs.FileInfo) error {
	link, _ := os.Readlink(name)
	h, err := tar.FileInfoHeader(st, link)
	if err != nil {
		return err
	}
	if h.Name, err = filepath.Rel(parent, name); err != nil {
		return err
	}
	if err := tw.WriteHeader(h); err != nil || !st.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(tw, f)
	return err
}

func (e *Engine) running(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := e.in(id, api.Running)
	return err
}

func problem(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.FileNotFound, err, "no such file")
	}
	return fault.Wrap(fault.InvalidArgument, err, "use the file")
}
