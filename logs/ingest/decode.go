// Package ingest writes logs to the engine: what OpenTelemetry's exporters
// send, and what boxes print. A row is as OpenTelemetry's Collector writes it,
// and is acknowledged when the engine has it on its disk.
package ingest

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/protobuf/encoding/protowire"

	"sandbox/core/fault"
)

// Encoding is how a request is written.
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
		// It bounds the depth, too, as the message's own reader does not.
		if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
			return logs, fault.New(fault.Malformed, "the body is not JSON")
		}
		if jsontext.Value(body).Kind() != '{' { // null is taken for an empty one
			return logs, fault.New(fault.Malformed, "the body must be an object")
		}
		logs, err = (&plog.JSONUnmarshaler{}).UnmarshalLogs(body)
	default:
		if err = checkDepth(body, request, 0); err == nil {
			logs, err = (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body)
		}
	}
	return logs, fault.Wrap(fault.Malformed, err, "the body is no ExportLogsServiceRequest")
}

// maxDepth bounds how deep values lie in each other: their reader would take
// any depth, and end the process when its stack is full.
const maxDepth = 128

// A message names the fields of one that hold messages in which values can lie.
type message map[protowire.Number]message

// request is ExportLogsServiceRequest, down to its values.
var request = func() message {
	value := message{}
	pair := message{2: value}
	value[5], value[6] = message{1: value}, message{1: pair}
	record := message{5: value, 6: pair}
	return message{1: {1: {1: pair}, 2: {1: {3: pair}, 2: record}}}
}()

var errDeep = errors.New("its values lie too deep in each other")

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
