package layer

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// merger copies what a stack of layers shows together into one directory, which then says
// of every name what the stack says, also to the layers that lie below both.
type merger struct {
	copier
	base int // the first of the ids that the owners of the merged layer lie in
}

// mergeTrees merges opened layers into the empty directory to. The merged layer is for the
// place of the others, on those that lie below them; both are given topmost first. A name
// that the layers hide of what lies below stays hidden, and a directory that one of them has
// begun anew is begun anew. The owners of all files come into the ids of the topmost layer.
func mergeTrees(layers, below []*os.File, to int) error {
	base, err := Base(layers[0])
	if err != nil {
		return err
	}
	m := merger{copier{root: to, links: map[sameFile]string{}, merges: true}, base}
	return m.directory(directories{layers, true}, below, to, ".")
}

// directory merges one directory, of which each layer has a part. below is what lies below
// them has of it. Nothing else is hidden: where nothing lies below, overlayfs would list
// what hides.
func (m *merger) directory(d directories, below []*os.File, to int, path string) error {
	all, err := namesOf(d.opened)
	if err != nil {
		return err
	}
	under, err := namesOf(below)
	if err != nil {
		return err
	}
	names := all.all()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := m.entry(all, under, name, to, path+"/"+name); err != nil {
			return err
		}
	}
	return m.dress(d.opened[0], to, path)
}

// entry merges what the layers have under a name.
func (m *merger) entry(all, under parts, name string, to int, path string) error {
	top := all.find(name)
	if top.kind != isDir {
		return m.other(top, under.find(name).there(), name, to, path)
	}
	parts, err := all.open(name)
	defer closeAll(parts.opened)
	if err != nil {
		return err
	}
	if len(parts.opened) == 0 {
		return fault.New(fault.Engine, "merge %s: it changed meanwhile", quote(path))
	}
	made, err := makeDir(to, name)
	if err != nil {
		return copyFailed(path, err)
	}
	defer unix.Close(made)
	if under.find(name).kind != isDir {
		return m.directory(parts, nil, made, path)
	}
	if !parts.through {
		err := m.directory(parts, nil, made, path)
		if err != nil {
			return err
		}
		return copyFailed(path, unix.Fsetxattr(made, opaqueAttribute, []byte("y"), 0))
	}
	below, err := under.open(name)
	defer closeAll(below.opened)
	if err != nil {
		return err
	}
	return m.directory(parts, below.opened, made, path)
}

// other copies what is no directory from the layer that has it. Sockets are left out.
// covers says that something lies below, which stays hidden then.
func (m *merger) other(top found, covers bool, name string, to int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(top.in.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return copyFailed(path, err)
	}
	switch nothing := isWhiteout(&st) || st.Mode&unix.S_IFMT == unix.S_IFSOCK; {
	case nothing && covers:
		return copyFailed(path, unix.Mknodat(to, name, unix.S_IFCHR, 0))
	case nothing:
		return nil
	}
	if err := m.from(top.in); err != nil {
		return err
	}
	return m.copier.entry(int(top.in.Fd()), to, name, path)
}

// from has the owners of what is copied from a directory moved to those of the merged
// layer. The directory's own owner tells where they lie.
func (m *merger) from(dir *os.File) error {
	base, err := Base(dir)
	m.shift = m.base - base
	return err
}

// dress gives a merged directory the look of its uppermost part.
func (m *merger) dress(from *os.File, to int, path string) error {
	if err := m.from(from); err != nil {
		return err
	}
	return copyFailed(path, m.dressDirectory(int(from.Fd()), to))
}

// overlayAttributes is the beginning of the attributes in which overlayfs notes what
// concerns the layer that a file lies in, and those below. In a merged layer they would be
// wrong.
const overlayAttributes = "user.overlay."

// shiftAttribute moves the ids that the value of an attribute holds.
func shiftAttribute(name string, value []byte, shift int) {
	const aclHead, aclEntry, aclUser, aclGroup = 4, 8, 0x02, 0x08 // of linux/posix_acl_xattr.h
	const capabilityRoot = 20                                     // of linux/capability.h, struct vfs_ns_cap_data
	move := func(id []byte) {
		binary.LittleEndian.PutUint32(id, uint32(int(binary.LittleEndian.Uint32(id))+shift)) //nolint:gosec // an id of a box
	}
	switch {
	case shift == 0:
	case name == "security.capability" && len(value) == capabilityRoot+4:
		move(value[capabilityRoot:])
	case strings.HasPrefix(name, "system.posix_acl_") && len(value) > aclHead:
		for entry := value[aclHead:]; len(entry) >= aclEntry; entry = entry[aclEntry:] {
			if tag := binary.LittleEndian.Uint16(entry); tag == aclUser || tag == aclGroup {
				move(entry[4:8])
			}
		}
	}
}
