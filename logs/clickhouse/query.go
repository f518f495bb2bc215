package clickhouse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"sandbox/core/fault"
)

// Request is one SELECT.
type Request struct {
	// SQL is a statement without FORMAT, INTO and SETTINGS. This package does
	// not check what it may do: its caller has to.
	SQL string
	// Params are the values of the placeholders {name:Type}, as plain text
	// without escapes.
	Params map[string]string
	// Literals are the values of the placeholders whose type is an array, a
	// tuple or a map. The engine reads their text in the syntax of a statement.
	Literals map[string]string
	// QueryID names the query on the engine. If it is "", a name is made up.
	QueryID string
	Limits  Limits
	// Settings are further settings of the engine. They take precedence over
	// those that this package sets.
	Settings map[string]string
}

// Limits bound one query; 0 is no limit. A query that goes over one fails, and
// never returns a part of its answer.
type Limits struct {
	Time        time.Duration
	ReadRows    int64
	ReadBytes   int64
	Memory      int64 // bytes
	ResultRows  int64
	ResultBytes int64 // in the encoding in which they are sent
}

// Column is a column of a result.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Result is a complete answer.
type Result struct {
	QueryID    string
	Columns    []Column
	Rows       jsontext.Value // an array of objects, whose members are in the columns' order
	Count      int            // of rows
	Statistics Statistics

	buffer *bytes.Buffer // the memory of Rows; nil for none
}

// Statistics says what an answer cost.
type Statistics struct {
	Elapsed   time.Duration
	ReadRows  uint64
	ReadBytes uint64
}

// grace is how long a query may take beyond its time limit before the client
// gives it up. The engine ends the query itself, but only between two blocks.
const grace = 2 * time.Second

// Query runs a statement that only reads. When ctx ends, the query ends on the
// engine, too. Errors: SQLError, BudgetExceeded, ResultTooLarge, Timeout,
// Unavailable, Upstream, Canceled.
func (c *Client) Query(ctx context.Context, r Request) (Result, error) {
	if r.QueryID == "" {
		r.QueryID = uuid.NewString()
	}
	whole := ctx
	if r.Limits.Time > 0 {
		var cancel context.CancelFunc
		whole, cancel = context.WithTimeout(ctx, r.Limits.Time+grace)
		defer cancel()
	}
	res, err := c.query(whole, r)
	if err != nil {
		if UnknownColumn(err) {
			c.Forget()
		}
		var ex *clickhouse.Exception
		if c.onDamage != nil && errors.As(err, &ex) && damaged(ex) {
			c.onDamage()
		}
		return Result{}, classify(ctx, whole, err)
	}
	res.QueryID = r.QueryID
	return res, nil
}

func (c *Client) query(ctx context.Context, r Request) (Result, error) {
	ctx = clickhouse.Context(endless{ctx}, clickhouse.WithQueryID(r.QueryID),
		clickhouse.WithSettings(c.settings(r)), clickhouse.WithParameters(r.parameters()))
	// The driver refuses a statement whose end looks like a FORMAT clause, as
	// the alias of a table may. It does not look into comments, so one is
	// appended.
	var body io.ReadCloser
	err := c.again(func() (err error) {
		body, err = c.conn.QueryFormat(ctx, "JSON", r.SQL+" /**/")
		return err
	})
	if err != nil {
		return Result{}, err
	}
	defer body.Close()
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	res := Result{buffer: buffer}
	err = readAll(buffer, body, r.Limits.ResultBytes)
	if err == nil {
		err = res.decode(buffer.Bytes())
	}
	if err != nil {
		res.Free()
		return Result{}, err
	}
	return res, nil
}

// buffers holds memory for results. To allocate some megabytes anew for each
// result would cost as much as to read it.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Free releases the result's memory. Rows can't be used any more. Without Free
// the memory is garbage like any other.
func (r *Result) Free() {
	if r.buffer != nil {
		buffers.Put(r.buffer)
		r.buffer, r.Rows = nil, nil
	}
}

// endless is a context that ends but hides its deadline. The driver would
// otherwise set the engine's time limit to five seconds after the deadline, and
// so override ours.
type endless struct{ context.Context }

// Deadline says that there is none.
func (endless) Deadline() (deadline time.Time, ok bool) { return }

// readAll reads a result and bounds its size. The bound is checked here,
// because the engine's own limit counts a constant column only once.
func readAll(b *bytes.Buffer, r io.Reader, limit int64) error {
	if limit > 0 {
		r = io.LimitReader(r, limit+1)
	}
	if _, err := b.ReadFrom(r); err != nil {
		return err
	}
	if limit > 0 && int64(b.Len()) > limit {
		return failure(fault.ResultTooLarge, nil, "the result has more than "+strconv.FormatInt(limit, 10)+" bytes")
	}
	return nil
}

// decode reads a complete answer. It fails if the answer is cut off or is no
// answer at all. The rows are not copied out of text.
func (r *Result) decode(text []byte) error {
	var rows *int
	var cost struct {
		Elapsed   float64 `json:"elapsed"`
		ReadRows  uint64  `json:"rows_read"`
		ReadBytes uint64  `json:"bytes_read"`
	}
	// A name may occur twice in a row, and the error for that is made below.
	// The decoder reads a buffer without copying it.
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	err := members(d, func(name string) error {
		switch name {
		case "meta":
			return json.UnmarshalDecode(d, &r.Columns)
		case "data":
			v, err := d.ReadValue()
			end := d.InputOffset()
			r.Rows = text[end-int64(len(v)) : end]
			return err
		case "rows":
			return json.UnmarshalDecode(d, &rows)
		case "statistics":
			return json.UnmarshalDecode(d, &cost)
		}
		return d.SkipValue()
	})
	if err != nil || rows == nil || r.Rows.Kind() != '[' {
		return failure(fault.Upstream, err, "the engine's answer can't be read")
	}
	if name, twice := duplicate(r.Columns); twice {
		return failure(fault.SQLError, nil, "two columns of the result are called "+strconv.Quote(name)+": rename one of them with AS")
	}
	r.Count = *rows
	r.Statistics = Statistics{
		Elapsed:  time.Duration(cost.Elapsed * float64(time.Second)),
		ReadRows: cost.ReadRows, ReadBytes: cost.ReadBytes,
	}
	return nil
}

// members reads one object with nothing behind it. read is called to read the
// value of each member.
func members(d *jsontext.Decoder, read func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return cmp.Or(err, errNoObject)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(name.String()); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder gives it bare
		return cmp.Or(err, errNoObject)
	}
	return nil
}

var errNoObject = errors.New("it is not one JSON object")

func duplicate(columns []Column) (string, bool) {
	seen := make(map[string]bool, len(columns))
	for _, c := range columns {
		if seen[c.Name] {
			return c.Name, true
		}
		seen[c.Name] = true
	}
	return "", false
}

// values are settings for how the engine writes a result, and for the result to
// be complete.
var values = map[string]string{
	"output_format_json_quote_64bit_integers":            "1", // JSON's numbers have 53 bits
	"output_format_json_quote_decimals":                  "1",
	"output_format_json_quote_denormals":                 "1", // otherwise nan and inf become null
	"output_format_json_escape_forward_slashes":          "0",
	"output_format_json_validate_utf8":                   "1", // other bytes become U+FFFD
	"output_format_json_named_tuples_as_objects":         "1",
	"date_time_output_format":                            "simple",
	"session_timezone":                                   "UTC",
	"extremes":                                           "0",
	"limit":                                              "0",
	"offset":                                             "0",
	"skip_unavailable_shards":                            "0",
	"fallback_to_stale_replicas_for_distributed_queries": "0",
	"partial_result_on_first_cancel":                     "0",
	"wait_end_of_query":                                  "1", // so a failure is sent before the first byte of a result
	"cancel_http_readonly_queries_on_client_close":       "1",
}

// overflows are the settings that say what the engine does when a limit is
// passed. With some of their values it would end a query early and call the
// result complete.
var overflows = []string{"read_overflow_mode", "read_overflow_mode_leaf", "group_by_overflow_mode", "sort_overflow_mode",
	"result_overflow_mode", "timeout_overflow_mode", "timeout_overflow_mode_leaf", "set_overflow_mode", "join_overflow_mode",
	"transfer_overflow_mode", "distinct_overflow_mode"}

func (c *Client) settings(r Request) clickhouse.Settings {
	s := clickhouse.Settings{"readonly": c.readonly}
	for name, value := range values {
		s[name] = value
	}
	for _, name := range overflows {
		s[name] = "throw"
	}
	l := r.Limits
	for name, limit := range map[string]int64{"max_rows_to_read": l.ReadRows, "max_bytes_to_read": l.ReadBytes,
		"max_memory_usage": l.Memory, "max_result_rows": l.ResultRows, "max_result_bytes": l.ResultBytes} {
		if limit > 0 {
			s[name] = limit
		}
	}
	if l.Time > 0 {
		s["max_execution_time"] = strconv.FormatFloat(l.Time.Seconds(), 'f', -1, 64)
	}
	for name, value := range r.Settings {
		s[name] = value
	}
	return s
}

// escapes writes characters as the engine expects them in the text of a
// parameter.
var escapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

func (r Request) parameters() clickhouse.Parameters {
	p := make(clickhouse.Parameters, len(r.Params)+len(r.Literals))
	for name, value := range r.Params {
		p[name] = escapes.Replace(value)
	}
	for name, value := range r.Literals { // a NUL can't be sent
		p[name] = strings.ReplaceAll(value, "\x00", `\0`)
	}
	return p
}
