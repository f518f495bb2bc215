package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// writeFiles writes files into a directory of the box. A name that is a link in
// the image, as resolv.conf often is, is replaced: such a link leads to a file
// of a service that runs only on a whole machine. A file that is a volume of the
// user's is left alone, and so is everything if dir is a volume or no directory.
// The directory keeps its time, as what the box did in it is told by that. Nothing of
// the box runs yet.
func writeFiles(dir string, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return err
	}
	defer root.Close()
	st, err := root.Lstat(dir[1:])
	if !ours(dir) || err == nil && !st.IsDir() {
		return nil
	}
	there := err == nil
	for name, text := range files {
		if !ours(filepath.Join(dir, name)) {
			continue
		}
		if err := writeFile(root, filepath.Join(dir, name)[1:], text); err != nil {
			return fmt.Errorf("write %s/%s: %w", dir, name, err)
		}
	}
	if there {
		return root.Chtimes(dir[1:], time.Time{}, st.ModTime())
	}
	return nil
}

func writeFile(root *os.Root, path, text string) error {
	if st, err := root.Lstat(path); err == nil && st.Mode().IsRegular() && st.Size() == int64(len(text)) {
		if old, err := root.ReadFile(path); err == nil && string(old) == text {
			return nil // nothing to write, so this works even on a full disk
		}
	}
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := root.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Chmod(0o644), f.Close())
}

// ours tells whether path is in the box's own file system, or does not exist.
// It is false for a mount point and for anything below one.
func ours(path string) bool {
	var root, st unix.Statx_t
	const mask = unix.STATX_MNT_ID | unix.STATX_TYPE
	if unix.Statx(unix.AT_FDCWD, "/", unix.AT_SYMLINK_NOFOLLOW, mask, &root) != nil {
		return false
	}
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, mask, &st)
	if errors.Is(err, unix.ENOENT) {
		return true
	}
	return err == nil && st.Mnt_id == root.Mnt_id
}
