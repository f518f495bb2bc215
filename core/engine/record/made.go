package record

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/image/layer"
	"sandbox/core/options"
)

// etcDir is the directory of a box in which files are written for it.
const etcDir = "/etc"

// maxEtc bounds the size of such a file, in bytes. A larger one is the box's own.
const maxEtc = 64 << 10

// Wrote notes the texts of files that a start has written into the box's /etc.
func (b *Box) Wrote(files map[string]string) {
	etc := maps.Clone(b.Etc) // other copies of the record have it too
	if etc == nil {
		etc = map[string]string{}
	}
	for name, text := range files {
		sum := sha256.Sum256([]byte(text))
		etc[name] = hex.EncodeToString(sum[:])
	}
	b.Etc = etc
}

// Made reports whether a file of the box's disk is as the engine itself has made it, and
// no work of the box: what is under /dev, /proc and /sys, where no box can change what is
// on its disk, since file systems of its own cover it; the mount points of volumes, for
// the same reason, and the directories that were added to lead to them; and the files in
// /etc that are written for it, as long as they hold what was written. in is the opened
// directory in which the file lies.
func (b Box) Made(file string, added bool, in *os.File) bool {
	var st unix.Stat_t
	if unix.Fstatat(int(in.Fd()), path.Base(file), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	switch {
	case options.Reserved(file):
		return true
	case file == etcDir:
		return added && len(b.Etc) > 0 && isDir(&st)
	case path.Dir(file) == etcDir && b.Etc[path.Base(file)] != "":
		return plain(&st, unix.S_IFREG|0o644) && digest(in, path.Base(file), &st) == b.Etc[path.Base(file)]
	}
	for _, v := range b.Options.Volumes {
		point := path.Clean(v.GuestPath)
		leads := added && isDir(&st) && strings.HasPrefix(point, file+"/")
		if leads || file == point && (isDir(&st) || plain(&st, unix.S_IFREG|0o644)) {
			return true
		}
	}
	return false
}

// isDir reports whether a file is a directory that is as the engine makes one.
func isDir(st *unix.Stat_t) bool { return plain(st, unix.S_IFDIR|0o755) }

// plain reports whether a file belongs to the root of the box and has a type and a mode.
func plain(st *unix.Stat_t, mode uint32) bool {
	return st.Uid%layer.IDsPerBox == 0 && st.Gid%layer.IDsPerBox == 0 && st.Mode == mode
}

// digest returns the digest of a file in an open directory; "" if it can't be read.
func digest(in *os.File, name string, st *unix.Stat_t) string {
	if st.Size > maxEtc {
		return ""
	}
	fd, err := unix.Openat(int(in.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), filepath.Join(in.Name(), name))
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, maxEtc)); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
