package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeFiles writes files into a folder of the box. A name that is a link in
// the image, as resolv.conf often is, is replaced: it leads to what runs only
// on a whole machine. Nothing of the box runs yet.
func writeFiles(dir string, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return err
	}
	defer root.Close()
	for name, text := range files {
		if err := writeFile(root, filepath.Join(dir, name)[1:], text); err != nil {
			return fmt.Errorf("write %s/%s: %w", dir, name, err)
		}
	}
	return nil
}

func writeFile(root *os.Root, path, text string) error {
	if st, err := root.Lstat(path); err == nil && st.Mode().IsRegular() && st.Size() == int64(len(text)) {
		if old, err := root.ReadFile(path); err == nil && string(old) == text {
			return nil // also on a full disk
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
