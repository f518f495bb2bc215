package layer

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// file packs a file with its contents. It may have been replaced since it was
// examined: O_NONBLOCK prevents that opening a FIFO blocks.
func (p *packer) file(e *entry, base string) error {
	fd, err := unix.Openat(e.fd, base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return err
	}
	if now.Ino != e.st.Ino || now.Mode != e.st.Mode || now.Size != e.st.Size {
		return changed(e.h.Name)
	}
	if e.st.Size > p.lim.Bytes {
		return fault.New(fault.TooLarge, "the layer holds more than an image may hold: %s would take it over the limit", quote(e.h.Name))
	}
	p.lim.Bytes -= e.st.Size
	e.fd, e.h.Typeflag, e.h.Size = fd, tar.TypeReg, e.st.Size
	if _, err := p.attributes(e); err != nil {
		return err
	}
	if err := p.tw.WriteHeader(&e.h); err != nil {
		return err
	}
	return p.content(e)
}

func changed(name string) error {
	return fault.New(fault.InvalidState, "%s changed while it was packed", quote(name))
}

// diskBlock is the unit of [unix.Stat_t.Blocks], in bytes.
const diskBlock = 512

// content writes the bytes of a file. Holes are not read, because that would
// fill the page cache with zeros.
func (p *packer) content(e *entry) error {
	size := e.st.Size
	if e.st.Blocks*diskBlock >= size {
		return p.data(e, 0, size)
	}
	for at := int64(0); at < size; {
		from, to, err := extentFrom(e.fd, at, size)
		if err == nil {
			err = p.zeros(from - at)
		}
		if err == nil {
			err = p.data(e, from, to)
		}
		if err != nil {
			return err
		}
		at = to
	}
	return nil
}

// extentFrom returns where the next data of a file begins and ends, which is
// size twice if there is none.
func extentFrom(fd int, at, size int64) (from, to int64, err error) {
	from, err = unix.Seek(fd, at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size, nil
	}
	if err != nil {
		return 0, 0, err
	}
	to, err = unix.Seek(fd, from, unix.SEEK_HOLE)
	return min(from, size), min(to, size), err
}

func (p *packer) zeros(n int64) error {
	for n > 0 {
		if err := p.ctx.Err(); err != nil {
			return fault.Of(err)
		}
		piece := min(n, hole)
		if _, err := p.tw.Write(zeros[:piece]); err != nil {
			return err
		}
		n -= piece
	}
	return nil
}

// data writes the bytes of a file between two offsets.
func (p *packer) data(e *entry, at, to int64) error {
	for at < to {
		if err := p.ctx.Err(); err != nil {
			return fault.Of(err)
		}
		n, err := unix.Pread(e.fd, p.buf[:min(to-at, int64(len(p.buf)))], at)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return changed(e.h.Name)
		}
		if _, err := p.tw.Write(p.buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// attributes adds the attributes of an open file or directory that a layer keeps
// to its header, and returns whether it is an opaque directory.
func (p *packer) attributes(e *entry) (opaque bool, err error) {
	n, err := unix.Flistxattr(e.fd, p.buf)
	if errors.Is(err, unix.ENOTSUP) || err == nil && n == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(p.buf[:n]), "\x00"), "\x00") {
		if name != opaqueAttribute && !keptAttribute(name) {
			continue
		}
		n, err := unix.Fgetxattr(e.fd, name, p.buf)
		if err != nil {
			return false, err
		}
		if name == opaqueAttribute {
			opaque = string(p.buf[:n]) == "y"
			continue
		}
		if err := p.attribute(e, name, string(p.buf[:n])); err != nil {
			return false, err
		}
	}
	return opaque, nil
}

func (p *packer) attribute(e *entry, name, value string) error {
	if strings.Contains(name, "=") {
		return unfit(e.h.Name, "a tar can't hold the name of its attribute %s", quote(name))
	}
	if name == capabilityAttribute {
		var ok bool
		if value, ok = p.capability(value); !ok {
			return nil
		}
	}
	if e.h.PAXRecords == nil {
		e.h.PAXRecords = map[string]string{}
	}
	e.h.PAXRecords["SCHILY.xattr."+name] = value
	return nil
}

// The forms of a file capability. The third one ends with the id of the root of
// the user namespace that it counts in; the second one counts in all.
const (
	capabilityRevision  = 0xff000000
	capabilityRevision2 = 0x02000000
	capabilityRevision3 = 0x03000000
	capabilitySize2     = 20
	capabilitySize3     = 24
)

// capability returns a file capability as the box saw it: one that counts in
// the box has the form without a root. It returns false for one that counts
// in other namespaces alone.
func (p *packer) capability(value string) (string, bool) {
	if len(value) != capabilitySize3 {
		return value, true
	}
	raw := []byte(value)
	magic := binary.LittleEndian.Uint32(raw)
	if magic&capabilityRevision != capabilityRevision3 {
		return value, true
	}
	root := binary.LittleEndian.Uint32(raw[capabilitySize2:]) - p.base
	switch {
	case root > maxID:
		return "", false
	case root > 0: // of a user namespace within the box
		binary.LittleEndian.PutUint32(raw[capabilitySize2:], root)
		return string(raw), true
	}
	binary.LittleEndian.PutUint32(raw, magic&^capabilityRevision|capabilityRevision2)
	return string(raw[:capabilitySize2]), true
}
