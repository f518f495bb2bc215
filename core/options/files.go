package options

import (
	"encoding/base64"
	"slices"
	"strings"

	"sandbox/core/fault"
)

// Bounds of the files of a box (contract, section 4).
const (
	MaxPath     = 4095 // bytes of a path
	MaxDepth    = 64   // levels of directories in a list
	MaxFilePage = 10_000
)

// Download says what is read from a box.
type Download struct {
	Path string
	Tar  bool   // as a tar, which a directory needs
	User string // whose rights it is read with, as in [Exec]; "" for the box's root
}

// StatFile says which file is looked at. The user is as in [Download].
type StatFile struct{ Path, User string }

// ListFiles says which page of the list of a directory is wanted.
type ListFiles struct {
	Path      string
	Depth     int    // 1 for the directory's own files; 0 means 1
	PageSize  int    // 0 means MaxFilePage
	PageToken string // the NextPageToken of the page before; "" for the first page
	User      string
}

// MakeDirectory says which directory is made. What is missing on its path is
// made too.
type MakeDirectory struct {
	Path string
	Mode *int // permission bits of the last directory, if it is made; nil means 0755
	User string
	// Owner is the name of a user who owns what is made where User is the box's
	// root; "" for User.
	Owner string
}

// MoveFile says which file gets which path.
type MoveFile struct{ From, To, User string }

// RemoveFile says what is removed.
type RemoveFile struct {
	Path      string
	Recursive bool // also a directory that is not empty, with all that is in it
	User      string
}

// WatchFiles says which directory is watched.
type WatchFiles struct {
	Path      string
	Recursive bool // with all directories below it, those too that are made later
	User      string
}

// Check reports all that is wrong with o. Errors: InvalidArgument, with fields.
func (o WatchFiles) Check() error { return checkFile(o.Path, o.User) }

// Check reports all that is wrong with o. Errors: InvalidArgument, with fields.
func (o StatFile) Check() error { return checkFile(o.Path, o.User) }

// Check reports all that is wrong with o. Errors: InvalidArgument, with fields.
func (o ListFiles) Check() error {
	var p problems
	p.filePath("path", o.Path)
	p.Within("depth", o.Depth, 0, MaxDepth)
	p.Within("page_size", o.PageSize, 0, MaxFilePage)
	_, err := o.After()
	p.When(err != nil, "page_token", "value", "must be a next_page_token of an earlier page")
	p.text("user", o.User)
	return p.Err(fault.InvalidArgument)
}

// After returns the path behind which the page begins, relative to the
// directory; "" for the first page. Errors: InvalidArgument.
func (o ListFiles) After() (string, error) {
	after, err := base64.RawURLEncoding.DecodeString(o.PageToken)
	names := strings.Split(string(after), "/")
	bad := func(name string) bool { return name == "" || name == "." || name == ".." }
	if err != nil || o.PageToken != "" && (len(names) > MaxDepth || slices.ContainsFunc(names, bad)) {
		return "", fault.New(fault.InvalidArgument, "the page token is not one of a list of files")
	}
	return string(after), nil
}

// FilePageToken returns the token of the page that begins behind a path, which
// is relative to the listed directory.
func FilePageToken(after string) string { return base64.RawURLEncoding.EncodeToString([]byte(after)) }

// Check reports all that is wrong with o. Errors: InvalidArgument, with fields.
func (o MakeDirectory) Check() error {
	var p problems
	p.filePath("path", o.Path)
	p.When(o.Mode != nil && (*o.Mode < 0 || *o.Mode > 0o7777), "mode", "range", "must be octal permission bits, from 0 to 7777")
	p.text("user", o.User)
	p.text("owner", o.Owner)
	return p.Err(fault.InvalidArgument)
}

// Check reports all that is wrong with o. Errors: InvalidArgument, with fields.
func (o MoveFile) Check() error {
	var p problems
	p.filePath("from", o.From)
	p.filePath("to", o.To)
	p.text("user", o.User)
	return p.Err(fault.InvalidArgument)
}

// Check reports all that is wrong with o. Errors: InvalidArgument, with fields.
func (o RemoveFile) Check() error { return checkFile(o.Path, o.User) }

// checkFile checks what names one file and whose rights count.
func checkFile(path, user string) error {
	var p problems
	p.filePath("path", path)
	p.text("user", user)
	return p.Err(fault.InvalidArgument)
}

// filePath checks a path of a box. One with ".." is refused: its text does not
// show which file it names, since a directory before the ".." may be a link.
func (p *problems) filePath(field, s string) {
	p.When(s == "", field, "absolute", "must be an absolute path")
	p.absolute(field, s)
	p.When(len(s) > MaxPath, field, "too_long", "has %d bytes and may have at most %d", len(s), MaxPath)
}
