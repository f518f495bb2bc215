package clickhouse

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"sandbox/core/fault"
)

// failure returns the error of a failed query or insert, of kind k. cause is
// the engine's own error. It is only for our own log, because its text may name
// hosts, users and settings.
func failure(k fault.Kind, cause error, message string) *fault.Error {
	f := &fault.Error{Kind: k, Message: message, Hidden: cause}
	if k == fault.Unavailable {
		f.RetryAfter = time.Second
	}
	return f
}

// UnknownColumn reports whether err, an error of this package, says that the
// table may have other columns than was assumed.
func UnknownColumn(err error) bool {
	var ex *clickhouse.Exception
	if !errors.As(err, &ex) {
		return false
	}
	switch ex.Code {
	case 10, 16, 47: // NOT_FOUND_COLUMN_IN_BLOCK, NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_IDENTIFIER
		return true
	}
	return false
}

// UnknownTable reports whether err, an error of this package, says that there is no
// table, or no database, of a name.
func UnknownTable(err error) bool {
	var ex *clickhouse.Exception
	return errors.As(err, &ex) && (ex.Code == 60 || ex.Code == 81) // UNKNOWN_TABLE, UNKNOWN_DATABASE
}

// kinds classifies those of the engine's codes that do not say that the
// statement is wrong. All other codes say that, including LOGICAL_ERROR and the
// exceptions of the libraries that the engine is made of, because those come
// from what a statement computes. The names are ClickHouse's.
var kinds = map[int32]fault.Kind{
	158: fault.BudgetExceeded, // TOO_MANY_ROWS
	307: fault.BudgetExceeded, // TOO_MANY_BYTES
	241: fault.BudgetExceeded, // MEMORY_LIMIT_EXCEEDED
	191: fault.BudgetExceeded, // SET_SIZE_LIMIT_EXCEEDED
	201: fault.BudgetExceeded, // QUOTA_EXCEEDED
	290: fault.BudgetExceeded, // LIMIT_EXCEEDED
	396: fault.ResultTooLarge, // TOO_MANY_ROWS_OR_BYTES
	159: fault.Timeout,        // TIMEOUT_EXCEEDED
	160: fault.Timeout,        // TOO_SLOW
	60:  fault.Unavailable,    // UNKNOWN_TABLE: the log table is missing, as statements name no other
	81:  fault.Unavailable,    // UNKNOWN_DATABASE
	202: fault.Unavailable,    // TOO_MANY_SIMULTANEOUS_QUERIES
	216: fault.Unavailable,    // QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING
	236: fault.Unavailable,    // ABORTED
	242: fault.Unavailable,    // TABLE_IS_READ_ONLY
	243: fault.Unavailable,    // NOT_ENOUGH_SPACE
	252: fault.Unavailable,    // TOO_MANY_PARTS
	394: fault.Unavailable,    // QUERY_WAS_CANCELLED, by someone else than us
	439: fault.Unavailable,    // CANNOT_SCHEDULE_TASK
	598: fault.Unavailable,    // DATABASE_REPLICATION_FAILED
	209: fault.Unavailable,    // SOCKET_TIMEOUT
	210: fault.Unavailable,    // NETWORK_ERROR
	279: fault.Unavailable,    // ALL_CONNECTION_TRIES_FAILED
	369: fault.Unavailable,    // ALL_REPLICAS_ARE_STALE: also when there is none
	519: fault.Unavailable,    // ALL_REPLICAS_LOST
	999: fault.Unavailable,    // KEEPER_EXCEPTION
	74:  fault.Upstream,       // CANNOT_READ_FROM_FILE_DESCRIPTOR
	75:  fault.Upstream,       // CANNOT_WRITE_TO_FILE_DESCRIPTOR
	76:  fault.Upstream,       // CANNOT_OPEN_FILE
	204: fault.Upstream,       // CANNOT_FSYNC
	115: fault.Upstream,       // UNKNOWN_SETTING
	164: fault.Upstream,       // READONLY
	192: fault.Upstream,       // UNKNOWN_USER
	193: fault.Upstream,       // WRONG_PASSWORD
	194: fault.Upstream,       // REQUIRED_PASSWORD
	198: fault.Upstream,       // DNS_ERROR
	425: fault.Upstream,       // SYSTEM_ERROR
	452: fault.Upstream,       // SETTING_CONSTRAINT_VIOLATION
	497: fault.Upstream,       // ACCESS_DENIED
	516: fault.Upstream,       // AUTHENTICATION_FAILED
}

// damaged reports whether the engine says that it can't read a file of its own. What
// it finds in a damaged file decides which of these codes it has for that.
func damaged(ex *clickhouse.Exception) bool {
	switch ex.Code {
	case 39, // TOO_LARGE_SIZE_COMPRESSED
		40,  // CHECKSUM_DOESNT_MATCH
		107, // FILE_DOESNT_EXIST
		246, // CORRUPTED_DATA
		271, // CANNOT_DECOMPRESS
		432: // UNKNOWN_CODEC: no statement can name one
		return true
	case 32, 33: // ATTEMPT_TO_READ_AFTER_EOF, CANNOT_READ_ALL_DATA
		return cutFile().MatchString(words(ex.Message, ex.CodeName))
	}
	return false
}

// cutFile matches what the engine says of a file that ends too early. A value of a
// statement that does so has the same codes, but none of its text comes as early in
// the message as these words do.
var cutFile = sync.OnceValue(func() *regexp.Regexp {
	const words = `^(Attempt to read after eof: While executing MergeTreeSelect\(` +
		`|Cannot read all data in MergeTreeReader` +
		`|Cannot read all data\. Bytes read: \d+\. Bytes expected: \d+: While reading or decompressing /)`
	return regexp.MustCompile(words) //nolint:forbidigo // on first use
})

// classify returns what a failure of the driver means. whole is ctx with the
// query's own deadline. Errors: SQLError, BudgetExceeded, ResultTooLarge,
// Timeout, Unavailable, Upstream and Canceled.
func classify(ctx, whole context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return failure(fault.Canceled, ctx.Err(), "the query was cancelled")
	case whole.Err() != nil:
		return failure(fault.Timeout, whole.Err(), "the engine did not answer in time")
	}
	var known *fault.Error
	if errors.As(err, &known) {
		if known.Kind == fault.Unavailable { // the error comes from the client's dial function
			return failure(fault.Unavailable, nil, known.Error())
		}
		return known // the error comes from reading the answer
	}
	var ex *clickhouse.Exception
	if errors.As(err, &ex) {
		return fromException(ex)
	}
	var answer *clickhouse.HTTPError
	if errors.As(err, &answer) {
		if answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests {
			return failure(fault.Unavailable, err, "the engine is not available")
		}
		return failure(fault.Upstream, err, "the engine's answer can't be read")
	}
	if cut(err) {
		return failure(fault.Unavailable, err, "the engine can't be reached, or died")
	}
	return failure(fault.Upstream, err, "the engine's answer can't be read")
}

// cut reports whether a failure is one of the connection, or of waiting for a
// connection. All other failures are the driver's: it can't read the answer,
// because the address is that of some other server.
func cut(err error) bool {
	var network net.Error // what net/http returns is one, too
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, clickhouse.ErrAcquireConnTimeout) || errors.Is(err, clickhouse.ErrAcquireConnNoAddress) ||
		errors.Is(err, clickhouse.ErrConnectionClosed)
}

func fromException(ex *clickhouse.Exception) error {
	if shardAway(ex) {
		return failure(fault.Unavailable, ex, "a shard of the log engine can't be reached, or died")
	}
	if damaged(ex) {
		return failure(fault.Upstream, ex, "a file of the log engine is damaged")
	}
	kind, ok := kinds[ex.Code]
	if !ok {
		kind = fault.SQLError
	}
	return failure(kind, ex, words(ex.Message, ex.CodeName))
}

// shardAway reports whether a server says that another one, of whose rows it needs
// some, is not there or has gone. ClickHouse has one code for that and for a value
// that ends too early; only its words tell which it is.
func shardAway(ex *clickhouse.Exception) bool {
	switch ex.Code {
	case 32: // ATTEMPT_TO_READ_AFTER_EOF
		return strings.Contains(ex.Message, "read after eof: while receiving packet from ")
	case 209, 210, 279, 369, 519: // as in kinds
		return true
	}
	return false
}

// words returns the message without what the engine adds to it: in front the address
// of the shard that it comes from, and behind its name for the failure, and its
// version.
func words(message, name string) string {
	if rest, ok := strings.CutPrefix(message, "Received from "); ok {
		if _, own, ok := strings.Cut(rest, ". DB::Exception: "); ok {
			message = own
		}
	}
	if i := strings.LastIndex(message, " (version "); i >= 0 {
		message = message[:i]
	}
	return strings.TrimRight(strings.TrimSuffix(strings.TrimSpace(message), "("+name+")"), " .:")
}
