package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// QueryResult is the whole answer of a log query. Its JSON is the same as the
// service's.
type QueryResult struct {
	QueryID    string                       `json:"queryId"`
	Columns    []Column                     `json:"columns"`
	Rows       []map[string]json.RawMessage `json:"rows"`
	Statistics Statistics                   `json:"statistics"`
}

// Column is a column of a result.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Statistics says what a query cost.
type Statistics struct {
	ElapsedMs float64 `json:"elapsedMs"`
	ReadRows  string  `json:"readRows"`
	ReadBytes string  `json:"readBytes"`
}

// LogFilter says which rows of the log table to return or count.
type LogFilter struct {
	From     time.Time `json:"from"` // From <= Timestamp < To, seven days at most
	To       time.Time `json:"to"`
	Service  string    `json:"service,omitempty"`
	Severity string    `json:"severity,omitempty"` // TRACE, DEBUG, INFO, WARN, ERROR or FATAL
	Text     string    `json:"text,omitempty"`     // a text that Body contains, in any case
	TraceID  string    `json:"traceId,omitempty"`
	Limit    int       `json:"limit,omitempty"` // 0: 100
}

// LogGrouping says how rows are counted.
type LogGrouping struct {
	LogFilter
	GroupBy       []string `json:"groupBy,omitempty"`       // any of service, severity and time
	BucketSeconds int      `json:"bucketSeconds,omitempty"` // 60, 300, 3600 or 86400
}

const logRoutes = "/v1/observability"

// LogSchema returns a description of the log table, one row per column. Errors:
// as QueryLogs.
func (c *Client) LogSchema(ctx context.Context) (r QueryResult, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: logRoutes + "/schema", again: true}, &r)
	return r, err
}

// QueryLogs runs one SELECT over otel.otel_logs. Errors: Malformed,
// TooLarge, SQLRejected, SQLError, ResultTooLarge, BudgetExceeded, RateLimited,
// Unavailable, Upstream, Timeout, Unauthenticated, PermissionDenied.
func (c *Client) QueryLogs(ctx context.Context, sql string, parameters map[string]any) (r QueryResult, err error) {
	body := map[string]any{"sql": sql}
	if parameters != nil {
		body["parameters"] = parameters
	}
	err = c.call(ctx, request{method: http.MethodPost, path: logRoutes + "/query", body: body, again: true}, &r)
	return r, err
}

// SearchLogs returns the newest rows that match a filter. Errors:
// InvalidInterval, and as QueryLogs.
func (c *Client) SearchLogs(ctx context.Context, f LogFilter) (r QueryResult, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: logRoutes + "/logs/search", body: f, again: true}, &r)
	return r, err
}

// CountLogs counts the rows that match a filter. Errors: as SearchLogs.
func (c *Client) CountLogs(ctx context.Context, g LogGrouping) (r QueryResult, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: logRoutes + "/logs/aggregate", body: g, again: true}, &r)
	return r, err
}
