package layer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/fault"
)

// maxNames bounds the names in one directory of a box that a diff looks at, which are in
// memory together.
const maxNames = 1 << 20

// States are two states of the files of a box. Each is a stack of opened directories as
// overlayfs shows it, lowest first: those of both states, and on top of them those of its
// own.
type States struct {
	Common, Old, Now []*os.File
	// Ours reports whether a file of the later state, in an opened directory, is no work of
	// the box; nil for none. added says that the earlier state has no such file.
	Ours func(path string, added bool, in *os.File) bool
}

// Diff compares two states of the files of a box. It calls each with the changes in
// the order of the paths, those behind the path after, until it returns false. A directory
// that was removed is one change; of a new one, each file is. A file is changed if its
// owner, mode, size or time is another. The box may be running: what changes meanwhile may
// be shown or not. Errors: Storage, ResourceExhausted (a directory has too many names).
func Diff(s States, after string, each func(api.Change) bool) error {
	d := differ{after: after, each: each, ours: s.Ours}
	err := d.directory("", topFirst(s.Common), directories{topFirst(s.Old), true}, directories{topFirst(s.Now), true})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough says that no more changes are wanted.
var errEnough = errors.New("enough")

func topFirst(dirs []*os.File) []*os.File {
	dirs = slices.Clone(dirs)
	slices.Reverse(dirs)
	return dirs
}

type differ struct {
	after string
	each  func(api.Change) bool
	ours  func(path string, added bool, in *os.File) bool
}

// directories are the parts that the layers of one state alone have of a directory, topmost
// first. through says that what the common layers have of it shows through.
type directories struct {
	opened  []*os.File
	through bool
}

// directory compares one directory.
func (d *differ) directory(path string, common []*os.File, old, now directories) error {
	below, err := namesOf(common)
	if err != nil {
		return err
	}
	was, err := stateOf(old, below)
	if err != nil {
		return err
	}
	is, err := stateOf(now, below)
	if err != nil {
		return err
	}
	names := append(was.own.all(), is.own.all()...)
	if !was.through || !is.through {
		names = append(names, below.all()...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := d.name(path+"/"+name, name, was, is); err != nil {
			return err
		}
	}
	return nil
}

// name compares what has a name in a directory.
func (d *differ) name(path, name string, was, is state) error {
	before, after := was.find(name), is.find(name)
	kind := ""
	switch {
	case before.there() && !after.there():
		kind = api.DiffRemoved
	case !before.there() && after.there():
		kind = api.DiffAdded
	case before.there() && before.differs(after, name):
		kind = api.DiffChanged
	}
	if kind != "" && after.there() && d.ours != nil && d.ours(path, kind == api.DiffAdded, after.in) {
		kind = ""
	}
	if err := d.tell(path, kind); err != nil || after.kind != isDir || d.past(path) {
		return err
	}
	return d.below(path, name, was, is)
}

// below compares what is in a directory of the later state.
func (d *differ) below(path, name string, was, is state) error {
	now, err := is.own.open(name)
	defer closeAll(now.opened)
	if err != nil {
		return err
	}
	now.through = now.through && is.through
	old := directories{}
	if was.find(name).kind == isDir {
		if old, err = was.own.open(name); err != nil {
			closeAll(old.opened)
			return err
		}
		old.through = old.through && was.through
	}
	defer closeAll(old.opened)
	common, err := is.below.open(name)
	defer closeAll(common.opened)
	if err != nil {
		return err
	}
	return d.directory(path, common.opened, old, now)
}

// tell calls each with a change behind the path that was told last; "" for no change.
func (d *differ) tell(path, kind string) error {
	if kind == "" || d.after != "" && comparePaths(path, d.after) <= 0 {
		return nil
	}
	if !d.each(api.Change{Path: path, Kind: kind}) {
		return errEnough
	}
	return nil
}

// past reports whether all that is below a directory was told before.
func (d *differ) past(path string) bool {
	return d.after != "" && comparePaths(path, d.after) < 0 && !strings.HasPrefix(d.after, path+"/")
}

// comparePaths compares paths part by part, so that what is in a directory comes right
// behind it.
func comparePaths(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

// kind is what a layer has under a name.
type kind int

const (
	isMissing kind = iota // the layer says nothing of it
	isHidden              // a whiteout
	isDir
	isOther
)

// found is what a state has under a name: what it is, and the layer's directory that has it.
type found struct {
	kind kind
	in   *os.File
}

func (f found) there() bool { return f.kind == isDir || f.kind == isOther }

// differs reports whether a file of the earlier state is another one in the later state.
// Owners are compared as the box sees them: each layer has a range of ids of its own.
func (f found) differs(later found, name string) bool {
	if f.in == later.in {
		return false
	}
	var a, b unix.Stat_t
	if unix.Fstatat(int(f.in.Fd()), name, &a, unix.AT_SYMLINK_NOFOLLOW) != nil || unix.Fstatat(int(later.in.Fd()), name, &b, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return true // it changes now
	}
	size := a.Size != b.Size && f.kind != isDir // that of a directory depends on its past
	return size || a.Mode != b.Mode || a.Uid%IDsPerBox != b.Uid%IDsPerBox || a.Gid%IDsPerBox != b.Gid%IDsPerBox || a.Mtim != b.Mtim
}

// state is a directory as one state of the disk shows it.
type state struct {
	own     parts // of the layers of this state alone
	below   parts // of the common layers
	through bool  // these show through
}

func stateOf(d directories, below parts) (state, error) {
	own, err := namesOf(d.opened)
	return state{own, below, d.through}, err
}

func (s state) find(name string) found {
	f := s.own.find(name)
	if f.kind == isMissing && s.through {
		return s.below.find(name)
	}
	return f
}

// part is what one layer has of a directory.
type part struct {
	dir   *os.File
	names map[string]kind
}

// parts are those of all layers that have something of a directory, topmost first.
type parts []part

func namesOf(dirs []*os.File) (parts, error) {
	var all parts
	for _, dir := range dirs {
		names, err := readNames(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, part{dir, names})
	}
	return all, nil
}

func readNames(dir *os.File) (map[string]kind, error) {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed meanwhile
	}
	if err != nil {
		return nil, fault.Disk(err, "read a directory of a box")
	}
	list := os.NewFile(uintptr(fd), dir.Name())
	defer list.Close()
	names := map[string]kind{}
	for {
		entries, err := list.ReadDir(namesAtOnce)
		for _, e := range entries {
			names[e.Name()] = kindOf(e.Type())
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, fault.Disk(err, "read a directory of a box")
		}
		if len(names) > maxNames {
			return nil, fault.New(fault.ResourceExhausted, "a directory of the box has more than %d names", maxNames)
		}
	}
}

// kindOf returns what a directory entry is. The only devices in a layer are whiteouts.
func kindOf(t fs.FileMode) kind {
	switch {
	case t.IsDir():
		return isDir
	case t&fs.ModeCharDevice != 0:
		return isHidden
	}
	return isOther
}

func (p parts) all() (names []string) {
	for _, part := range p {
		for name := range part.names {
			names = append(names, name)
		}
	}
	return names
}

// find returns what the topmost layer that says something of a name says.
func (p parts) find(name string) found {
	for _, part := range p {
		if k := part.names[name]; k != isMissing {
			return found{k, part.dir}
		}
	}
	return found{}
}

// open opens the directories that make up the one with a name, up to an opaque one. The
// caller closes them, also after an error.
func (p parts) open(name string) (d directories, err error) {
	for _, part := range p {
		switch part.names[name] {
		case isMissing:
			continue
		case isHidden, isOther:
			return d, nil
		}
		fd, err := openDir(int(part.dir.Fd()), name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue // it was replaced meanwhile
		}
		if err != nil {
			return d, fault.Disk(err, "open a directory of a box")
		}
		d.opened = append(d.opened, os.NewFile(uintptr(fd), name))
		if isOpaque(fd) {
			return d, nil
		}
	}
	d.through = true
	return d, nil
}

func isOpaque(fd int) bool {
	var value [1]byte
	n, err := unix.Fgetxattr(fd, opaqueAttribute, value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
