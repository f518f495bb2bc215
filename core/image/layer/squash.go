package layer

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// SquashFrom is how many layers are so many that those of disks of boxes are merged. A box
// stands on 128 at most.
const SquashFrom = 96

// Merged returns the directory of the layer into which layers are merged, lowest first. Its
// name tells which these are, so that nothing need be written down.
func Merged(dirs []string) string {
	sum := sha256.New()
	for _, dir := range dirs {
		_, _ = io.WriteString(sum, filepath.Base(dir)+"\n") // never fails
	}
	return filepath.Join(filepath.Dir(dirs[0]), hex.EncodeToString(sum.Sum(nil)))
}

// Own returns how many of the layers of a box or an image, lowest first, lie below those
// that were made of disks of boxes.
func Own(dirs []string) int {
	n := len(dirs)
	for n > 0 && ofBox(dirs[n-1]) {
		n--
	}
	return n
}

func ofBox(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	base, err := Base(f)
	return err == nil && base != 0 || IsDisk(dir)
}

// Squashed returns layers, lowest first, with those that were made of disks of boxes
// replaced by the layer that they were merged into, if there is one; those that came later
// lie on it, and as many as least stay below it. Few layers are never merged.
func Squashed(dirs []string, least int) []string {
	if len(dirs) < SquashFrom {
		return dirs
	}
	from := max(Own(dirs), least)
	for end := len(dirs); end >= max(SquashFrom, from+2); end-- {
		if merged := Merged(dirs[from:end]); OnDisk(merged) {
			return slices.Concat(dirs[:from], []string{merged}, dirs[end:])
		}
	}
	return dirs
}

// Common returns how many of the lowest layers two boxes or images share.
func Common(a, b []string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
