package wire

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandbox/api"
)

// Entry is a record about one file, as a child sends it: its length in bytes as
// a varint, then the members in their order, numbers as varints and texts with
// their lengths before them. A list has 10,000 of them, so they are not JSON.
type Entry struct {
	Path       string // relative to what was asked for; "" for that itself
	Target     string // of a symbolic link
	Owner      string // "" if the box has no name for UID
	Group      string
	Mode       uint32 // with the file's type, as stat has it
	UID, GID   uint32
	Size       int64
	Modified   int64 // seconds since 1970
	Nanosecond uint32
	Unreadable bool // a directory that the list could not look into
}

// MaxRecord bounds a record in bytes: the longest path in a list, the longest
// target, and some more.
const MaxRecord = 32 << 10

// AppendRecord appends a record with its length.
func AppendRecord(b, record []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(record))), record...)
}

// ReadRecord reads the next record into buf, which it grows if needed, and
// returns it. Errors: io.EOF between records, ErrProtocol.
func ReadRecord(r *bufio.Reader, buf []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if errors.Is(err, io.EOF) { // within a length it is io.ErrUnexpectedEOF
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the length of a record: %w", ErrProtocol, err)
	}
	if n > MaxRecord {
		return nil, fmt.Errorf("%w: a record of %d bytes", ErrProtocol, n)
	}
	if uint64(cap(buf)) < n {
		buf = make([]byte, max(n, 1024))
	}
	if _, err := io.ReadFull(r, buf[:n]); err != nil {
		return nil, fmt.Errorf("%w: a record of %d bytes: %w", ErrProtocol, n, err)
	}
	return buf[:n], nil
}

// Append appends the entry, without the length of the record.
func (e Entry) Append(b []byte) []byte {
	for _, text := range []string{e.Path, e.Target, e.Owner, e.Group} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	unreadable := uint64(0)
	if e.Unreadable {
		unreadable = 1
	}
	for _, n := range []uint64{uint64(e.Mode), uint64(e.UID), uint64(e.GID), uint64(e.Nanosecond), unreadable} {
		b = binary.AppendUvarint(b, n)
	}
	return binary.AppendVarint(binary.AppendVarint(b, e.Size), e.Modified)
}

// ReadEntry reads the record of an entry. Errors: ErrProtocol.
func ReadEntry(record []byte) (Entry, error) { return readEntry(record, Entry{}) }

// readEntry does the same, and shares the names of owner and group with the entry before.
func readEntry(record []byte, before Entry) (Entry, error) {
	f := fields{rest: record}
	e := Entry{Path: f.text(), Target: f.text(), Owner: f.like(before.Owner), Group: f.like(before.Group)}
	for _, n := range []*uint32{&e.Mode, &e.UID, &e.GID, &e.Nanosecond} {
		*n = uint32(f.number())
	}
	e.Unreadable = f.number() != 0
	e.Size, e.Modified = f.signed(), f.signed()
	if f.bad || len(f.rest) > 0 || !e.valid() {
		return Entry{}, fmt.Errorf("%w: a record that is no entry", ErrProtocol)
	}
	return e, nil
}

// These bound the times that JSON can hold: the years 1 to 9999.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// valid tells whether an entry is one that a file can have.
func (e Entry) valid() bool {
	return types[e.Mode&unix.S_IFMT] != "" && e.Size >= 0 && e.Nanosecond < 1e9 && ValidPath(e.Path)
}

// ValidPath tells whether p is a path relative to a directory, without "." and
// "..", or "". Its bytes may be any.
func ValidPath(p string) bool {
	if p == "" {
		return true
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
			return false
		}
	}
	return true
}

// ComparePaths compares two paths in the order of a list: what is in a directory
// comes right behind it, by the bytes of the names.
func ComparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		}
		return int(a[i]) - int(b[i])
	}
	return len(a) - len(b)
}

// fields reads the members of a record. bad is set once one is missing.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) number() uint64 {
	n, size := binary.Uvarint(f.rest)
	return advance(f, n, size)
}

func (f *fields) signed() int64 {
	n, size := binary.Varint(f.rest)
	return advance(f, n, size)
}

// advance goes behind a number of that size.
func advance[T any](f *fields, n T, size int) T {
	if size <= 0 {
		f.bad, f.rest = true, nil
		var none T
		return none
	}
	f.rest = f.rest[size:]
	return n
}

func (f *fields) text() string { return f.like("") }

// like reads a text. If it equals before, it costs no memory.
func (f *fields) like(before string) string {
	n := f.number()
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return ""
	}
	text := f.rest[:n]
	f.rest = f.rest[n:]
	if string(text) == before {
		return before
	}
	return string(text)
}

// Listed makes the documents of the entries of a list. Most files of a list have the
// owner of the one before: 10,000 of them share its name.
type Listed struct {
	base         string // absolute, clean
	last         Entry
	owner, group *string // of last
}

// NewListed returns what makes the documents of the files below base, which is absolute.
func NewListed(base string) *Listed { return &Listed{base: path.Clean(base)} }

// Next returns the next entry and its document. Errors: ErrProtocol.
func (l *Listed) Next(record []byte) (Entry, api.File, error) {
	e, err := readEntry(record, l.last)
	if err != nil {
		return e, api.File{}, err
	}
	if e.Owner != l.last.Owner {
		l.owner = named(e.Owner)
	}
	if e.Group != l.last.Group {
		l.group = named(e.Group)
	}
	l.last = e
	return e, e.file(l.base, l.owner, l.group), nil
}

// types are the types of files.
var types = map[uint32]api.FileType{
	unix.S_IFREG: api.RegularFile, unix.S_IFDIR: api.Directory, unix.S_IFLNK: api.Symlink, unix.S_IFIFO: api.FIFO,
	unix.S_IFSOCK: api.Socket, unix.S_IFCHR: api.CharDevice, unix.S_IFBLK: api.BlockDevice,
}

// File returns the document of the file. Its path is relative to base, which is
// absolute.
func (e Entry) File(base string) api.File {
	return e.file(path.Clean(base), named(e.Owner), named(e.Group))
}

// file returns the document of the file, whose base is clean.
func (e Entry) file(base string, owner, group *string) api.File {
	whole := below(base, e.Path)
	f := api.File{
		Type: types[e.Mode&unix.S_IFMT], Size: e.Size, Mode: api.FileMode(e.Mode & 0o7777), UID: int(e.UID), GID: int(e.GID),
		Owner: owner, Group: group, Unreadable: e.Unreadable,
		ModifiedAt: time.Unix(min(max(e.Modified, firstSecond), lastSecond), int64(e.Nanosecond)).UTC(),
	}
	f.Path, f.PathBase64 = Shown(whole)
	f.Name = path.Base(f.Path)
	if f.Type == api.Symlink {
		var target string
		target, f.TargetBase64 = Shown(e.Target)
		f.Target = &target
	}
	return f
}

// below returns the path of a file below a directory, whose path is clean; "" is the
// directory itself.
func below(base, p string) string {
	if p == "" {
		return base
	}
	return strings.TrimSuffix(base, "/") + "/" + p
}

// named returns a name as JSON can hold it; nil for "".
func named(s string) *string {
	if s == "" {
		return nil
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return &s
}

// Shown returns bytes as JSON can hold them, with U+FFFD for each byte that is
// not UTF-8. If there is such a byte, exact has all of them in base64.
func Shown(s string) (text, exact string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	var b strings.Builder
	for _, r := range s { // a byte that is not UTF-8 is U+FFFD here
		b.WriteRune(r)
	}
	return b.String(), base64.StdEncoding.EncodeToString([]byte(s))
}
