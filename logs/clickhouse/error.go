package clickhouse

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"sandbox/core/fault"
)

// Class says what a caller can do about a failure. Its text is the code of
// the log service's problem of that name.
type Class string

// The classes.
const (
	SQLError       Class = "sql_error"        // the statement is wrong
	BudgetExceeded Class = "budget_exceeded"  // it reads too much or needs too much memory
	ResultTooLarge Class = "result_too_large" // its answer is too long
	Timeout        Class = "timeout"          // it takes too long
	Unavailable    Class = "unavailable"      // there is no engine, or it died, or is too busy
	UpstreamError  Class = "upstream_error"   // the engine answers wrongly, or is not set up for us
	Canceled       Class = "canceled"         // ended by the caller
)

// Error is a failed query or insert.
type Error struct {
	Class   Class
	Code    int    // the engine's number, 0 when it is not the engine that failed it
	Name    string // the engine's name for that, such as UNKNOWN_IDENTIFIER; may be empty
	Message string // the engine's own words, where it has any
	Err     error  // the cause, or nil
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// UnknownColumn tells whether the table may have other columns than was known.
func (e *Error) UnknownColumn() bool {
	switch e.Code {
	case 10, 16, 47: // NOT_FOUND_COLUMN_IN_BLOCK, NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_IDENTIFIER
		return true
	}
	return false
}

// classes are those of the engine's codes that don't say that the statement is
// wrong, which is what all others say. The names are ClickHouse's.
var classes = map[int32]Class{
	158:  BudgetExceeded, // TOO_MANY_ROWS
	307:  BudgetExceeded, // TOO_MANY_BYTES
	241:  BudgetExceeded, // MEMORY_LIMIT_EXCEEDED
	191:  BudgetExceeded, // SET_SIZE_LIMIT_EXCEEDED
	201:  BudgetExceeded, // QUOTA_EXCEEDED
	290:  BudgetExceeded, // LIMIT_EXCEEDED
	396:  ResultTooLarge, // TOO_MANY_ROWS_OR_BYTES
	159:  Timeout,        // TIMEOUT_EXCEEDED
	160:  Timeout,        // TOO_SLOW
	60:   Unavailable,    // UNKNOWN_TABLE: the log table is missing, no other is ever named
	81:   Unavailable,    // UNKNOWN_DATABASE
	202:  Unavailable,    // TOO_MANY_SIMULTANEOUS_QUERIES
	216:  Unavailable,    // QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING
	236:  Unavailable,    // ABORTED
	242:  Unavailable,    // TABLE_IS_READ_ONLY
	243:  Unavailable,    // NOT_ENOUGH_SPACE
	252:  Unavailable,    // TOO_MANY_PARTS
	394:  Unavailable,    // QUERY_WAS_CANCELLED, and not by us
	439:  Unavailable,    // CANNOT_SCHEDULE_TASK
	598:  Unavailable,    // DATABASE_REPLICATION_FAILED
	209:  Unavailable,    // SOCKET_TIMEOUT
	210:  Unavailable,    // NETWORK_ERROR
	279:  Unavailable,    // ALL_CONNECTION_TRIES_FAILED
	999:  Unavailable,    // KEEPER_EXCEPTION
	40:   UpstreamError,  // CHECKSUM_DOESNT_MATCH
	49:   UpstreamError,  // LOGICAL_ERROR
	74:   UpstreamError,  // CANNOT_READ_FROM_FILE_DESCRIPTOR
	75:   UpstreamError,  // CANNOT_WRITE_TO_FILE_DESCRIPTOR
	76:   UpstreamError,  // CANNOT_OPEN_FILE
	115:  UpstreamError,  // UNKNOWN_SETTING
	164:  UpstreamError,  // READONLY
	192:  UpstreamError,  // UNKNOWN_USER
	193:  UpstreamError,  // WRONG_PASSWORD
	194:  UpstreamError,  // REQUIRED_PASSWORD
	198:  UpstreamError,  // DNS_ERROR
	246:  UpstreamError,  // CORRUPTED_DATA
	425:  UpstreamError,  // SYSTEM_ERROR
	452:  UpstreamError,  // SETTING_CONSTRAINT_VIOLATION
	497:  UpstreamError,  // ACCESS_DENIED
	516:  UpstreamError,  // AUTHENTICATION_FAILED
	1000: UpstreamError,  // POCO_EXCEPTION
	1001: UpstreamError,  // STD_EXCEPTION
	1002: UpstreamError,  // UNKNOWN_EXCEPTION
}

// classify tells what a failure of the driver means. whole is ctx with the
// query's own deadline.
func classify(ctx, whole context.Context, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return &Error{Class: Canceled, Message: "the query was cancelled", Err: ctx.Err()}
	case whole.Err() != nil:
		return &Error{Class: Timeout, Message: "the engine did not answer in time", Err: whole.Err()}
	}
	var ex *clickhouse.Exception
	if errors.As(err, &ex) {
		return fromException(ex)
	}
	var answer *clickhouse.HTTPError
	if errors.As(err, &answer) {
		if answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests {
			return &Error{Class: Unavailable, Message: "the engine is not available", Err: err}
		}
		return &Error{Class: UpstreamError, Message: "the engine's answer can't be read", Err: err}
	}
	var why *fault.Error
	if errors.As(err, &why) { // of who dialled
		return &Error{Class: Unavailable, Message: why.Error()}
	}
	return &Error{Class: Unavailable, Message: "the engine is not to be reached, or died", Err: err}
}

func fromException(ex *clickhouse.Exception) *Error {
	class, ok := classes[ex.Code]
	if !ok {
		class = SQLError
	}
	return &Error{Class: class, Code: int(ex.Code), Name: ex.CodeName, Message: words(ex.Message, ex.CodeName)}
}

// words returns the message without what the engine writes behind it: its name
// for the failure, and its version.
func words(message, name string) string {
	if i := strings.LastIndex(message, " (version "); i >= 0 {
		message = message[:i]
	}
	return strings.TrimRight(strings.TrimSuffix(strings.TrimSpace(message), "("+name+")"), " .:")
}
