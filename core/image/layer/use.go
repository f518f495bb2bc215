package layer

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Use is what a box takes up on the home's disk.
type Use struct {
	Bytes   int64
	AtLeast bool // there may be more: the box has more files than were to be counted, or some can't be read
}

// DiskUse returns what the box whose directory is dir takes up on the home's
// disk. It counts no more than so many files, because a box can make as many as
// it likes. The box may be running: no link that it makes meanwhile leads out of
// the directory. What only an open descriptor holds is not seen.
func DiskUse(dir string, most int) Use {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Use{AtLeast: true}
	}
	defer unix.Close(root)
	c := count{root: root, most: most, todo: []string{"."}}
	for len(c.todo) > 0 && c.files < c.most {
		last := len(c.todo) - 1
		next := c.todo[last]
		c.todo = c.todo[:last]
		c.directory(next)
	}
	c.AtLeast = c.AtLeast || len(c.todo) > 0 || c.files >= c.most
	return c.Use
}

// count is a count that has begun.
type count struct {
	Use
	root  int // the directory in which all paths begin
	todo  []string
	files int
	most  int // of files
}

// beneath keeps a path below the directory in which it begins: a box can replace
// any part of the path while it is followed.
var beneath = unix.OpenHow{
	Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
}

// directory counts the files of one directory, and notes its directories.
func (c *count) directory(path string) {
	fd, err := unix.Openat2(c.root, path, &beneath)
	if err != nil {
		c.AtLeast = true
		return
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	for c.files < c.most {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			c.file(fd, path, name)
		}
		if err != nil { // the end, mostly
			return
		}
	}
}

// file counts one file. Of a file with several names, each name counts its share.
func (c *count) file(dir int, path, name string) {
	c.files++
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err != nil: // removed meanwhile
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		c.Bytes += st.Blocks * 512
		c.todo = append(c.todo, filepath.Join(path, name))
	default:
		c.Bytes += st.Blocks * 512 / int64(max(st.Nlink, 1)) //nolint:gosec // a number of names
	}
}
