package link

import (
	"encoding/binary"
	"fmt"

	"sandbox/core/engine/wire"
)

// kind says what a frame of a line is.
type kind byte

const (
	// Frames that begin a session on a line: one of the host end, one as the answer.
	kindOpen    kind = iota + 1 // the session's id, then the type and the body of its first request
	kindResume                  // the session's id, then how far the host end has received each stream
	kindOpened                  // how far the box end has received each stream
	kindUnknown                 // there is no such session, or it can't be opened

	// Frames within a session. Those below without a stream have 0.
	kindData   // bytes of a stream from an offset on
	kindAck    // the bytes of a stream before the offset have been taken
	kindFin    // a stream has ended at the offset; of stream 0 of the host end: so has the session
	kindStop   // of the box end: nobody reads the stream any more
	kindDetach // of the host end: its last frame, the session waits for another caller
	kindEnded  // of the box end: its last frame, the answer to a detach or the end of stream 0
	kindPing   // of the host end
	kindPong   // of the box end
)

// A frame is its header and then size bytes. The header is the kind and the stream
// (1 byte each), two zero bytes, the size (4 bytes) and the offset (8 bytes).
const (
	headerSize = 16
	maxFrame   = 64 << 10 // of a frame of data: four whole records of TLS
	maxData    = maxFrame - headerSize
	idSize     = 16
	maxStreams = 1 + wire.MaxFDs
)

type header struct {
	kind   kind
	stream int
	size   int
	offset int64
}

func (h header) append(b []byte) []byte {
	b = append(b, byte(h.kind), byte(h.stream), 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(h.size))
	return binary.BigEndian.AppendUint64(b, uint64(h.offset))
}

// parseHeader reads a header of headerSize bytes, and refuses what no end sends.
func parseHeader(b []byte) (header, error) {
	h := header{
		kind: kind(b[0]), stream: int(b[1]),
		size: int(binary.BigEndian.Uint32(b[4:])), offset: int64(binary.BigEndian.Uint64(b[8:])),
	}
	least, most := 0, 0
	switch h.kind {
	case kindOpen:
		least, most = idSize+1, idSize+1+wire.MaxBody
	case kindResume:
		least, most = idSize, idSize+8*maxStreams
	case kindOpened:
		most = 8 * maxStreams
	case kindData:
		least, most = 1, maxData
	case kindUnknown, kindAck, kindFin, kindStop, kindDetach, kindEnded, kindPing, kindPong:
	default:
		return header{}, fmt.Errorf("%w: a frame of kind %d", wire.ErrProtocol, h.kind)
	}
	if b[2] != 0 || b[3] != 0 || h.stream >= maxStreams || h.size < least || h.size > most || h.offset < 0 {
		return header{}, fmt.Errorf("%w: a frame of kind %d for stream %d with %d bytes at %d", wire.ErrProtocol, h.kind, h.stream, h.size, h.offset)
	}
	return h, nil
}

// appendOffsets and parseOffsets write and read how far streams have been received.
func appendOffsets(b []byte, offsets []int64) []byte {
	for _, n := range offsets {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func parseOffsets(b []byte) ([]int64, error) {
	if len(b)%8 != 0 {
		return nil, fmt.Errorf("%w: offsets in %d bytes", wire.ErrProtocol, len(b))
	}
	offsets := make([]int64, 0, maxStreams)
	for ; len(b) > 0; b = b[8:] {
		offsets = append(offsets, int64(binary.BigEndian.Uint64(b)))
	}
	return offsets, nil
}
