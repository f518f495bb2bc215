// Package ingest writes logs to the engine: those that OpenTelemetry's
// exporters send, and the output of boxes. It writes a row as OpenTelemetry's
// Collector does, and acknowledges it when the engine has it on its disk.
package ingest

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/protobuf/encoding/protowire"

	"sandbox/core/fault"
)

// Encoding is the encoding of a request.
type Encoding int

// The encodings of OTLP over HTTP.
const (
	Protobuf Encoding = iota
	JSON
)

// decode reads an ExportLogsServiceRequest. Errors: Malformed.
func decode(e Encoding, body []byte) (plog.Logs, error) {
	var logs plog.Logs
	var err error
	switch e {
	case JSON:
		// This also bounds the depth, which the message's own parser does not.
		if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
			return logs, fault.New(fault.Malformed, "the body is not JSON")
		}
		if jsontext.Value(body).Kind() != '{' { // the parser would read null as an empty object
			return logs, fault.New(fault.Malformed, "the body must be an object")
		}
		logs, err = (&plog.JSONUnmarshaler{}).UnmarshalLogs(body)
	default:
		if err = checkDepth(body, request, 0); err == nil {
			logs, err = (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body)
		}
	}
	return logs, fault.Wrap(fault.Malformed, err, "the body is not an ExportLogsServiceRequest")
}

// maxDepth bounds how deep values may be nested. The parser accepts any depth,
// and would end the process when its stack overflows.
const maxDepth = 128

// A message maps the numbers of its fields to their messages, for the fields in
// which values can occur.
type message map[protowire.Number]message

// request describes ExportLogsServiceRequest, down to its values.
var request = func() message {
	value := message{}
	pair := message{2: value}
	value[5], value[6] = message{1: value}, message{1: pair}
	record := message{5: value, 6: pair}
	return message{1: {1: {1: pair}, 2: {1: {3: pair}, 2: record}}}
}()

var errDeep = errors.New("its values are nested too deeply")

func checkDepth(b []byte, m message, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if inner, known := m[number]; known && kind == protowire.BytesType {
			text, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			if err := checkDepth(text, inner, depth+1); err != nil {
				return err
			}
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
	}
	return nil
}
