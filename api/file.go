package api

import (
	"fmt"
	"strconv"
	"time"
)

// FileType is what a file is (contract, section 4).
type FileType string

// What a file can be.
const (
	RegularFile FileType = "file"
	Directory   FileType = "directory"
	Symlink     FileType = "symlink"
	FIFO        FileType = "fifo"
	Socket      FileType = "socket"
	CharDevice  FileType = "char_device"
	BlockDevice FileType = "block_device"
)

// FileMode is the permission bits of a file. Its text is octal, as in "0755".
type FileMode int

// String returns the bits in octal, with at least four digits.
func (m FileMode) String() string {
	text, _ := m.AppendText(nil)
	return string(text)
}

// MarshalText returns the bits in octal.
func (m FileMode) MarshalText() ([]byte, error) { return m.AppendText(nil) }

// AppendText appends the bits in octal. Lists of 10,000 files are written so without
// memory for each mode.
func (m FileMode) AppendText(b []byte) ([]byte, error) {
	for least := FileMode(0o1000); least > m && least > 1; least >>= 3 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(m), 8), nil
}

// UnmarshalText reads octal bits, up to 7777.
func (m *FileMode) UnmarshalText(text []byte) error {
	bits, err := strconv.ParseUint(string(text), 8, 12)
	if err != nil {
		return fmt.Errorf("%.20q is no mode: want octal permission bits, such as 755", text)
	}
	*m = FileMode(bits)
	return nil
}

// File is what is known of a file of a box, without its content. A symbolic link
// is a file of its own here, and Target is where it leads.
type File struct {
	Name string `json:"name"` // last element of Path; "/" for the root
	Path string `json:"path"` // absolute
	// Set where the path is not UTF-8: its exact bytes, in base64. Name and path
	// have U+FFFD in place of what is not UTF-8.
	PathBase64 string    `json:"path_base64,omitzero"`
	Type       FileType  `json:"type"`
	Size       int64     `json:"size"` // in bytes
	Mode       FileMode  `json:"mode"`
	UID        int       `json:"uid"`
	GID        int       `json:"gid"`
	Owner      *string   `json:"owner"` // by the box's /etc/passwd
	Group      *string   `json:"group"` // by the box's /etc/group
	ModifiedAt time.Time `json:"modified_at"`
	Target     *string   `json:"target"` // of a symbolic link
	// Set where the target is not UTF-8.
	TargetBase64 string `json:"target_base64,omitzero"`
	// Set in a list for a directory that the list was to look into and that the
	// user may not read.
	Unreadable bool `json:"unreadable,omitzero"`
}

// Files is a page of a list of files, in the order of their paths: those in a
// directory come right behind it, by the bytes of their names.
type Files struct {
	Files         []File  `json:"files"`
	NextPageToken *string `json:"next_page_token"` // nil on the last page
}

// MadeDirectory is a directory that was asked for.
type MadeDirectory struct {
	File
	Created bool `json:"created"` // false if it was there already
}

// RemovedFiles is what a removal has removed.
type RemovedFiles struct {
	Path    string `json:"path"`
	Removed int64  `json:"removed"` // files and directories
}

// FileEventType is what has happened to a file (contract, section 4).
type FileEventType string

// What an event of a watch tells. Overflow and EndOfWatch are about the watch and
// not about a file.
const (
	FileCreated    FileEventType = "create"
	FileModified   FileEventType = "modify"
	FileRemoved    FileEventType = "remove"
	FileRenamed    FileEventType = "rename"
	FileAttributes FileEventType = "attributes"
	Overflow       FileEventType = "overflow"
	EndOfWatch     FileEventType = "end"
)

// WatchEnd is why a watch has ended.
type WatchEnd string

// Why a watch ends.
const (
	WatchRemoved    WatchEnd = "removed"     // the directory was removed, moved or unmounted
	WatchBoxStopped WatchEnd = "box_stopped" // the box has stopped, or stops
	WatchFailed     WatchEnd = "failed"      // Message says why
)

// FileEvent is one event of a watch. Between an Overflow and the event before it,
// others were lost. Nothing comes behind an EndOfWatch.
type FileEvent struct {
	Type FileEventType `json:"type"`
	Path string        `json:"path,omitzero"` // absolute; of a rename the new one
	// Set where the path is not UTF-8: its exact bytes, in base64.
	PathBase64 string   `json:"path_base64,omitzero"`
	From       string   `json:"from,omitzero"` // of a rename: the path before
	FromBase64 string   `json:"from_base64,omitzero"`
	Directory  bool     `json:"directory,omitzero"` // the file is one
	Reason     WatchEnd `json:"reason,omitzero"`    // of an end
	Message    string   `json:"message,omitzero"`   // why, of an end that is a failure
}
