package logs

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/logs/clickhouse"
)

// Result is the whole answer of an operation.
type Result struct {
	QueryID    string
	Columns    []clickhouse.Column
	Count      int // of rows
	Statistics clickhouse.Statistics

	parts []clickhouse.Result // the results of the queries, in the order of their rows
}

// Free releases the result's memory. Its document can't be used any more.
func (r Result) Free() {
	for i := range r.parts {
		r.parts[i].Free()
	}
}

func whole(id string, r clickhouse.Result) Result {
	return Result{QueryID: id, Columns: r.Columns, Count: r.Count, Statistics: r.Statistics, parts: []clickhouse.Result{r}}
}

// add appends the rows of a later query.
func (r *Result) add(more clickhouse.Result) {
	r.Columns = more.Columns
	r.parts = append(r.parts, more)
	r.Count += more.Count
	r.Statistics.Elapsed += more.Statistics.Elapsed
	r.Statistics.ReadRows += more.Statistics.ReadRows
	r.Statistics.ReadBytes += more.Statistics.ReadBytes
}

// Document returns the result as JSON, in pieces to be written one after
// another. The engine's rows are passed on as they came, because to encode them
// anew would cost more than the query.
func (r Result) Document() ([][]byte, error) {
	columns, err := json.Marshal(r.Columns)
	if err != nil {
		return nil, err
	}
	head := append([]byte(`{"queryId":`+strconv.Quote(r.QueryID)+`,"columns":`), columns...)
	pieces := [][]byte{append(head, `,"rows":[`...)}
	rows := 0
	for _, part := range r.parts {
		inner := inside(part.Rows)
		if len(inner) == 0 {
			continue
		}
		if rows++; rows > 1 {
			pieces = append(pieces, []byte(","))
		}
		pieces = append(pieces, inner)
	}
	s := r.Statistics
	tail := `],"statistics":{"elapsedMs":` + strconv.FormatFloat(s.Elapsed.Seconds()*1000, 'f', -1, 64) +
		`,"readRows":"` + strconv.FormatUint(s.ReadRows, 10) + `","readBytes":"` + strconv.FormatUint(s.ReadBytes, 10) + `"}}`
	return append(pieces, []byte(tail)), nil
}

// inside returns the text between the brackets of an array, which is empty for
// an empty array.
func inside(array jsontext.Value) []byte {
	if len(array) < 2 { // the value is absent: no query was run
		return nil
	}
	inner := array[1 : len(array)-1]
	for len(inner) > 0 && inner[0] <= ' ' {
		inner = inner[1:]
	}
	return inner
}
