package layer

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// blockSize is the unit in which the kernel counts what a file occupies, in bytes.
const blockSize = 512

// Use returns what a layer occupies on the disk, in bytes. What can't be read counts as
// nothing. A file with several names counts once.
func Use(dir string) int64 {
	var total int64
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what can't be read counts as nothing
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if ok && !seen[st.Ino] {
			total += st.Blocks * blockSize
			if st.Nlink > 1 && !e.IsDir() {
				seen[st.Ino] = true
			}
		}
		return nil
	})
	return total
}
