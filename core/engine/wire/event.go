package wire

import (
	"encoding/binary"
	"fmt"
	"path"
	"strings"

	"sandbox/api"
)

// Event is a record about one event of a watch. Its members are texts with their
// lengths before them, and a number.
type Event struct {
	Type      api.FileEventType
	Path      string // relative to the watched directory; of a rename the new one
	From      string
	Reason    api.WatchEnd
	Message   string
	Directory bool
}

// Append appends the event, without the length of the record.
func (e Event) Append(b []byte) []byte {
	for _, text := range []string{string(e.Type), e.Path, e.From, string(e.Reason), e.Message} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	directory := uint64(0)
	if e.Directory {
		directory = 1
	}
	return binary.AppendUvarint(b, directory)
}

// ReadEvent reads the record of an event. Errors: ErrProtocol.
func ReadEvent(record []byte) (Event, error) {
	f := fields{rest: record}
	e := Event{
		Type: api.FileEventType(f.text()), Path: f.text(), From: f.text(), Reason: api.WatchEnd(f.text()), Message: f.text(),
		Directory: f.number() != 0,
	}
	if f.bad || len(f.rest) > 0 || !e.valid() {
		return Event{}, fmt.Errorf("%w: a record that is no event", ErrProtocol)
	}
	return e, nil
}

// valid tells whether an event has the members of its type.
func (e Event) valid() bool {
	about := e.Path != "" && ValidPath(e.Path) && e.Reason == "" && e.Message == ""
	switch e.Type {
	case api.FileCreated, api.FileModified, api.FileRemoved, api.FileAttributes:
		return about && e.From == ""
	case api.FileRenamed:
		return about && e.From != "" && ValidPath(e.From)
	case api.Overflow:
		return e == Event{Type: api.Overflow}
	case api.EndOfWatch:
		known := e.Reason == api.WatchRemoved || e.Reason == api.WatchBoxStopped || e.Reason == api.WatchFailed
		return known && e.Path == "" && e.From == "" && !e.Directory
	}
	return false
}

// Document returns the event as it is told, with paths below base, which is
// absolute.
func (e Event) Document(base string) api.FileEvent {
	doc := api.FileEvent{Type: e.Type, Directory: e.Directory, Reason: e.Reason, Message: strings.ToValidUTF8(e.Message, "\uFFFD")}
	if e.Path != "" {
		doc.Path, doc.PathBase64 = Shown(below(path.Clean(base), e.Path))
	}
	if e.From != "" {
		doc.From, doc.FromBase64 = Shown(below(path.Clean(base), e.From))
	}
	return doc
}
