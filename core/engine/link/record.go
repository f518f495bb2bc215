package link

import (
	"encoding/binary"
	"fmt"
	"io"

	"sandbox/core/engine/wire"
)

// record is a frame of init's protocol as stream 0 carries it. In place of its
// descriptors it has notes: for each descriptor one that names its stream, or for the
// end of an exec how much of the output comes before it.
type record struct {
	frame wire.Frame
	notes []note
}

// note is about one stream: that it begins, or an offset in it.
type note struct {
	what   direction
	stream int
	from   int64 // where the bytes to the host begin, or until where they come before the record
	to     int64 // where the bytes to the box begin
}

// direction says which way the bytes of a stream flow.
type direction byte

const (
	toHost direction = iota + 1
	toBox
	bothWays
	before // no direction: the bytes up to the offset come before the record
)

// A record is its body's length (4 bytes), its type and number of notes (1 byte each),
// the notes and the body.
const (
	recordSize = 6
	noteSize   = 18
)

func (r record) bytes() []byte {
	b := make([]byte, 0, recordSize+noteSize*len(r.notes)+len(r.frame.Body))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.frame.Body)))
	b = append(b, byte(r.frame.Type), byte(len(r.notes)))
	for _, n := range r.notes {
		b = append(b, byte(n.what), byte(n.stream))
		b = binary.BigEndian.AppendUint64(b, uint64(n.from))
		b = binary.BigEndian.AppendUint64(b, uint64(n.to))
	}
	return append(b, r.frame.Body...)
}

// readRecord reads the next record. The error is io.EOF between records.
func readRecord(r io.Reader) (record, error) {
	var head [recordSize + noteSize*wire.MaxFDs]byte
	if _, err := io.ReadFull(r, head[:recordSize]); err != nil {
		return record{}, err
	}
	size, n := int(binary.BigEndian.Uint32(head[:])), int(head[5])
	rec := record{frame: wire.Frame{Type: wire.Type(head[4])}}
	if size > wire.MaxBody || n > wire.MaxFDs {
		return rec, fmt.Errorf("%w: a record of %d bytes and %d notes", wire.ErrProtocol, size, n)
	}
	notes := head[recordSize : recordSize+noteSize*n]
	if _, err := io.ReadFull(r, notes); err != nil {
		return rec, cutShort(err)
	}
	for ; len(notes) > 0; notes = notes[noteSize:] {
		n := note{
			direction(notes[0]), int(notes[1]),
			int64(binary.BigEndian.Uint64(notes[2:])), int64(binary.BigEndian.Uint64(notes[10:])),
		}
		if n.what < toHost || n.what > before || n.from < 0 || n.to < 0 || n.stream < 1 || n.stream >= maxStreams {
			return rec, fmt.Errorf("%w: a note %v", wire.ErrProtocol, n)
		}
		rec.notes = append(rec.notes, n)
	}
	var err error
	rec.frame.Body, err = readBody(r, size)
	return rec, cutShort(err)
}

// readBody reads size bytes. Its buffer grows only with the bytes that arrive, so that
// a long body that is announced and never sent costs no memory.
func readBody(r io.Reader, size int) ([]byte, error) {
	var b []byte
	for len(b) < size {
		n := min(size-len(b), max(len(b), smallest))
		b = append(b, make([]byte, n)...)
		if _, err := io.ReadFull(r, b[len(b)-n:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func cutShort(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull returns it as it is
		return io.ErrUnexpectedEOF
	}
	return err
}
