package mcp

import (
	"context"
	"encoding/json"

	"sandbox/client"
	"sandbox/core/fault"
)

// logArguments are the arguments of query_logs.
type logArguments struct {
	SQL        string         `json:"sql" jsonschema:"one SELECT statement"`
	Parameters map[string]any `json:"parameters,omitempty" jsonschema:"values for placeholders {name:Type} of the statement: strings, numbers or booleans"`
}

func queryLogs(ctx context.Context, s *session, in logArguments) (r client.QueryResult, err error) {
	doc, err := s.Logs(ctx, in.SQL, in.Parameters)
	if err != nil {
		return r, err
	}
	if len(doc) > s.MaxOutput {
		return r, fault.New(fault.ResultTooLarge, "the result has %d bytes and may have at most %d: select less, or add a LIMIT", len(doc), s.MaxOutput)
	}
	err = json.Unmarshal(doc, &r)
	return r, fault.Wrap(fault.Internal, err, "read the result of a log query")
}
