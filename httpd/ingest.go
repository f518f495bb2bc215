package httpd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"google.golang.org/protobuf/encoding/protowire"

	"sandbox/core/fault"
	"sandbox/logs/ingest"
)

// exportLogs stores what an OpenTelemetry exporter sends.
func (s *Server) exportLogs(w http.ResponseWriter, r *request) error {
	encoding, err := r.encoding()
	if err != nil {
		return err
	}
	if s.Ingest == nil {
		return fault.New(fault.Unavailable, "the server stores no logs: it has no embedded engine, and no --clickhouse-write-dsn")
	}
	body, free, err := s.exportBody(w, r)
	defer free()
	if err != nil {
		return err
	}
	refused, err := s.Ingest.Export(r.Context(), encoding, body)
	if err != nil {
		return err
	}
	writePieces(w, http.StatusOK, otlpTypes[encoding], exportResponse(encoding, refused))
	return nil
}

var otlpTypes = map[ingest.Encoding][]string{ingest.Protobuf: {"application/x-protobuf"}, ingest.JSON: jsonType}

// errMedia means that a body has a Content-Type or Content-Encoding that OTLP does
// not have.
var errMedia = errors.New("unsupported media type")

func (r *request) encoding() (ingest.Encoding, error) {
	header := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(header)
	switch {
	case err == nil && kind == "application/x-protobuf":
		return ingest.Protobuf, nil
	case err == nil && kind == "application/json":
		return ingest.JSON, nil
	}
	return ingest.Protobuf, fault.Wrap(fault.Malformed, errMedia, "the Content-Type is %q and must be application/x-protobuf or application/json", brief(header))
}

// exportBody reads and unpacks a body. The bytes that all requests hold at once
// are bounded. The caller calls free, also after an error, when it no longer uses
// the body. Errors: Malformed, TooLarge, Timeout, ResourceExhausted.
func (s *Server) exportBody(w http.ResponseWriter, r *request) (body []byte, free func(), err error) {
	held := 0
	free = func() { s.exporting.Release(int64(held)) }
	var from io.Reader = http.MaxBytesReader(w, r.Body, ingest.MaxBody)
	switch packed := r.Header.Get("Content-Encoding"); packed {
	case "", "identity":
	case "gzip":
		if from, err = gzip.NewReader(from); err != nil {
			return nil, free, exportFault(err)
		}
	case "deflate":
		if from, err = zlib.NewReader(from); err != nil {
			return nil, free, exportFault(err)
		}
	default:
		return nil, free, fault.Wrap(fault.Malformed, errMedia, "the Content-Encoding is %q and must be gzip, deflate or identity", brief(packed))
	}
	var all bytes.Buffer
	for piece := 64 << 10; ; piece = min(2*piece, 1<<20) {
		if !s.exporting.TryAcquire(int64(piece)) {
			return nil, free, fault.New(fault.ResourceExhausted, "too many records are being read: try again in a second")
		}
		held += piece
		n, err := io.CopyN(&all, from, int64(piece))
		switch {
		case all.Len() > ingest.MaxBody:
			return nil, free, errTooLarge(ingest.MaxBody)
		case errors.Is(err, io.EOF):
			return all.Bytes(), free, nil
		case err != nil:
			return nil, free, exportFault(err)
		case n < int64(piece):
			return nil, free, exportFault(io.ErrUnexpectedEOF)
		}
	}
}

func exportFault(err error) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return errTooLarge(ingest.MaxBody)
	}
	return errBody(err)
}

// exportResponse returns an ExportLogsServiceResponse. It is empty when all
// records are stored.
func exportResponse(e ingest.Encoding, refused int) []byte {
	const why = "their time is after the year 2262, which the table can't hold"
	switch {
	case e == ingest.JSON && refused == 0:
		return []byte("{}")
	case e == ingest.JSON:
		return fmt.Appendf(nil, `{"partialSuccess":{"rejectedLogRecords":"%d","errorMessage":%q}}`, refused, why)
	case refused == 0:
		return nil
	}
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(refused))
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}
