// Package logs answers read-only queries over the table otel.otel_logs: it
// reads the documents of the four operations, lets a statement through or
// not, asks the engine within a budget, and gives a whole result or a
// [Problem]. It knows nothing of HTTP but the statuses of its problems.
package logs

import (
	"net/http"
	"slices"
	"time"

	"sandbox/core/fault"
)

// Code names a class of failure for clients. It is never changed.
type Code string

// The codes (contract, section 9).
const (
	Malformed        Code = "malformed"
	Unauthenticated  Code = "unauthenticated"
	PermissionDenied Code = "permission_denied"
	NotFound         Code = "not_found"
	MethodNotAllowed Code = "method_not_allowed"
	TooLarge         Code = "too_large"
	InvalidInterval  Code = "invalid_interval"
	SQLRejected      Code = "sql_rejected"
	SQLError         Code = "sql_error"
	ResultTooLarge   Code = "result_too_large"
	BudgetExceeded   Code = "budget_exceeded"
	RateLimited      Code = "rate_limited"
	UpstreamError    Code = "upstream_error"
	Unavailable      Code = "unavailable"
	Timeout          Code = "timeout"
)

// Row is what a code means to a client.
type Row struct {
	Code   Code
	Status int    // of HTTP
	Title  string // the same for all problems of the code
}

var table = []Row{
	{Malformed, http.StatusBadRequest, "The request can't be read"},
	{Unauthenticated, http.StatusUnauthorized, "No valid API key"},
	{PermissionDenied, http.StatusForbidden, "The API key may not do this"},
	{NotFound, http.StatusNotFound, "No such route"},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "The route has no such method"},
	{TooLarge, http.StatusRequestEntityTooLarge, "The statement or the body is too large"},
	{InvalidInterval, http.StatusUnprocessableEntity, "The interval is not allowed"},
	{SQLRejected, http.StatusUnprocessableEntity, "The statement is not allowed"},
	{SQLError, http.StatusUnprocessableEntity, "The statement is wrong"},
	{ResultTooLarge, http.StatusUnprocessableEntity, "The result is too large"},
	{BudgetExceeded, http.StatusUnprocessableEntity, "The query is over its budget"},
	{RateLimited, http.StatusTooManyRequests, "Too many queries"},
	{UpstreamError, http.StatusBadGateway, "The log engine answered wrongly"},
	{Unavailable, http.StatusServiceUnavailable, "The log engine is not available"},
	{Timeout, http.StatusGatewayTimeout, "The query took too long"},
}

// Codes returns the row of every code.
func Codes() []Row { return slices.Clone(table) }

// Row returns the code's row; an unknown code has Unavailable's, which is what
// a fault of ours is called.
func (c Code) Row() Row {
	is := func(c Code) func(Row) bool { return func(r Row) bool { return r.Code == c } }
	if i := slices.IndexFunc(table, is(c)); i >= 0 {
		return table[i]
	}
	return table[slices.IndexFunc(table, is(Unavailable))]
}

// Problem is a failed operation. Its words are for the client.
type Problem struct {
	Code         Code
	Message      string
	Prerequisite string        // what must be done before it can work, or ""
	Fields       []fault.Field // what is wrong with which member of the document
	RetryAfter   time.Duration // when another try may help; 0 for none
	Err          error         // the cause, for the server's own log; or nil
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }
