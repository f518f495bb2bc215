package fake

import (
	"context"
	"errors"
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

// StatFile looks at a file of the host's own file system.
func (e *Engine) StatFile(_ context.Context, boxID string, o options.StatFile) (api.File, error) {
	if err := errors.Join(o.Check(), e.running(boxID)); err != nil {
		return api.File{}, fault.Of(err)
	}
	return stat(o.Path)
}

// types are the types of files as package fs has them.
var types = map[fs.FileMode]api.FileType{
	0: api.RegularFile, fs.ModeDir: api.Directory, fs.ModeSymlink: api.Symlink, fs.ModeNamedPipe: api.FIFO,
	fs.ModeSocket: api.Socket, fs.ModeDevice: api.BlockDevice, fs.ModeDevice | fs.ModeCharDevice: api.CharDevice,
}

func stat(path string) (api.File, error) {
	st, err := os.Lstat(path)
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return api.File{}, problem(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	f := api.File{
		Name: st.Name(), Path: filepath.Clean(path), Type: types[st.Mode().Type()], Size: st.Size(), Mode: api.FileMode(sys.Mode & 0o7777),
		UID: int(sys.Uid), GID: int(sys.Gid), ModifiedAt: st.ModTime().UTC(),
	}
	if sys.Uid == 0 {
		root := "root"
		f.Owner, f.Group = &root, &root
	}
	if f.Type == api.Symlink {
		target, _ := os.Readlink(path)
		f.Target = &target
	}
	return f, nil
}

// ListFiles lists a directory of the host's own file system.
func (e *Engine) ListFiles(_ context.Context, boxID string, o options.ListFiles) (api.Files, error) {
	if err := errors.Join(o.Check(), e.running(boxID)); err != nil {
		return api.Files{}, fault.Of(err)
	}
	after, _ := o.After()
	if o.PageSize == 0 {
		o.PageSize = options.MaxFilePage
	}
	root, err := filepath.EvalSymlinks(o.Path)
	if err != nil {
		return api.Files{}, problem(err)
	}
	page, behind, last := api.Files{Files: []api.File{}}, after == "", ""
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		below, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case below == ".":
			if !d.IsDir() {
				return syscall.ENOTDIR
			}
			return nil
		case behind && len(page.Files) == o.PageSize:
			token := options.FilePageToken(last)
			page.NextPageToken = &token
			return fs.SkipAll
		case behind:
			f, err := stat(path)
			if err != nil {
				return err
			}
			f.Path = filepath.Join(o.Path, below)
			page.Files, last = append(page.Files, f), below
		}
		behind = behind || below == after
		if d.IsDir() && strings.Count(below, "/")+1 >= max(o.Depth, 1) {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		err = problem(err)
	}
	return page, err
}

// User returns the box's root, and knows no other: the host's own users stay alone.
func (e *Engine) User(_ context.Context, boxID string, o options.User) (core.User, error) {
	if err := errors.Join(o.Check(), e.running(boxID)); err != nil {
		return core.User{}, fault.Of(err)
	}
	if o.Name != "root" {
		return core.User{}, fault.New(fault.InvalidArgument, "the box has no user %q", o.Name)
	}
	return core.User{Name: o.Name, Home: "/root"}, nil
}

// MakeDirectory makes a directory in the host's own file system.
func (e *Engine) MakeDirectory(_ context.Context, boxID string, o options.MakeDirectory) (api.MadeDirectory, error) {
	if err := errors.Join(o.Check(), e.running(boxID)); err != nil {
		return api.MadeDirectory{}, fault.Of(err)
	}
	_, missing := os.Stat(o.Path)
	err := os.MkdirAll(o.Path, 0o755)
	if err == nil && missing != nil && o.Mode != nil {
		err = syscall.Chmod(o.Path, uint32(*o.Mode))
	}
	if err != nil {
		return api.MadeDirectory{}, problem(err)
	}
	f, err := stat(o.Path)
	return api.MadeDirectory{File: f, Created: missing != nil}, err
}

// MoveFile renames a file of the host's own file system.
func (e *Engine) MoveFile(_ context.Context, boxID string, o options.MoveFile) (api.File, error) {
	if err := errors.Join(o.Check(), e.running(boxID)); err != nil {
		return api.File{}, fault.Of(err)
	}
	if err := syscall.Rename(o.From, o.To); err != nil {
		return api.File{}, problem(err)
	}
	return stat(o.To)
}

// RemoveFile removes from the host's own file system.
func (e *Engine) RemoveFile(_ context.Context, boxID string, o options.RemoveFile) (api.RemovedFiles, error) {
	if err := errors.Join(o.Check(), e.running(boxID)); err != nil {
		return api.RemovedFiles{}, fault.Of(err)
	}
	done := api.RemovedFiles{Path: filepath.Clean(o.Path)}
	if done.Path == "/" {
		return done, fault.New(fault.InvalidArgument, "/ can't be removed")
	}
	if _, err := stat(o.Path); err != nil {
		return done, err
	}
	_ = filepath.WalkDir(o.Path, func(string, fs.DirEntry, error) error { done.Removed++; return nil })
	remove := os.Remove
	if o.Recursive {
		remove = os.RemoveAll
	}
	if err := remove(o.Path); err != nil {
		return done, problem(err)
	}
	return done, nil
}
