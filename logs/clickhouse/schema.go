package clickhouse

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"sandbox/core/fault"
)

// Schema is the log table's structure as the engine has it now.
type Schema struct {
	Columns    []TableColumn
	SortingKey string // the expressions, such as "ServiceName, TimestampTime, Timestamp"
	Result     Result // one row per column; set by Describe only
}

// TableColumn is a column of the log table.
type TableColumn struct {
	Name              string `json:"name"`
	Type              string `json:"type"`
	DefaultKind       string `json:"default_kind"` // "", DEFAULT, MATERIALIZED, ALIAS or EPHEMERAL
	DefaultExpression string `json:"default_expression"`
	Comment           string `json:"comment"`
	Codec             string `json:"codec"`
	IsInSortingKey    int    `json:"is_in_sorting_key"`
}

// Has reports whether the table has a column.
func (s Schema) Has(name string) bool {
	return slices.ContainsFunc(s.Columns, func(c TableColumn) bool { return c.Name == name })
}

// HasSeconds reports whether the table also has the time of each row in
// seconds, and has that in its key. OpenTelemetry's exporter made the table so
// before its version 0.151.
func (s Schema) HasSeconds() bool {
	return slices.ContainsFunc(s.Columns, func(c TableColumn) bool {
		return c.Name == "TimestampTime" && c.Type == "DateTime" && c.DefaultExpression == "toDateTime(Timestamp)" && c.IsInSortingKey == 1
	})
}

// FiveMinutes reports whether the table's key begins with time buckets, as
// OpenTelemetry's exporter makes it since its version 0.151. The engine does
// not see by itself that a condition on Timestamp is also one on the buckets.
func (s Schema) FiveMinutes() bool {
	return strings.Contains(s.SortingKey, "toStartOfFiveMinutes(Timestamp)")
}

// Ordinary reports whether the column is stored as it was written, so that
// SELECT * returns it.
func (c TableColumn) Ordinary() bool { return c.DefaultKind == "" || c.DefaultKind == "DEFAULT" }

// fresh is how long a schema that was read is used before it is read again.
const fresh = 10 * time.Second

// stored finds the database and the name of the table that has the rows. It is the log
// table itself, or what a Distributed table spreads over shards, as this host has it.
// engine_full is such as "Distributed('cluster', 'otel', 'otel_logs_local', rand())".
const stored = `WITH (SELECT if(engine = 'Distributed',
	(extract(engine_full, '^Distributed\\(\'[^\']*\', \'([^\']*)\''), extract(engine_full, '^Distributed\\(\'[^\']*\', \'[^\']*\', \'([^\']*)\'')),
	(database, name)) FROM system.tables WHERE database = 'otel' AND name = 'otel_logs') AS stored `

// describe takes from the table that has the rows what a Distributed one does not have.
const describe = stored + `SELECT t.name AS name, t.type AS type, t.default_kind AS default_kind, t.default_expression AS default_expression,
	t.comment AS comment, s.compression_codec AS codec, s.is_in_sorting_key AS is_in_sorting_key
FROM system.columns AS t LEFT JOIN (SELECT * FROM system.columns WHERE (database, table) = stored) AS s ON t.name = s.name
WHERE t.database = 'otel' AND t.table = 'otel_logs' ORDER BY t.position`

const sortingKey = stored + `SELECT sorting_key FROM system.tables WHERE (database, name) = stored`

// Schema returns the log table's columns and key, as they were at most ten
// seconds ago. Errors: as Query; a missing table is Unavailable.
func (c *Client) Schema(ctx context.Context) (Schema, error) {
	c.mu.Lock()
	s, good := c.schema, time.Now().Before(c.until)
	c.mu.Unlock()
	if good {
		return s, nil
	}
	// One read serves all callers who wait now. The end of one caller's context
	// does not end the read for the others.
	done := c.reading.DoChan("", func() (any, error) { return c.Describe(context.WithoutCancel(ctx), Limits{Time: schemaTime}) })
	select {
	case r := <-done:
		if r.Err != nil {
			return Schema{}, r.Err
		}
		return r.Val.(Schema), nil
	case <-ctx.Done():
		return Schema{}, classify(ctx, ctx, ctx.Err())
	}
}

// schemaTime bounds the reading of a schema, because other callers wait for it.
const schemaTime = 10 * time.Second

// Forget drops the schema that was read, so that the next caller reads it from
// the table.
func (c *Client) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// Describe reads the log table's columns and key from the engine, within l.
// Errors: as Schema.
func (c *Client) Describe(ctx context.Context, l Limits) (Schema, error) {
	var s Schema
	var err error
	if s.Result, err = c.Query(ctx, Request{SQL: describe, Limits: l}); err != nil {
		return Schema{}, err
	}
	key, err := c.Query(ctx, Request{SQL: sortingKey, Limits: l})
	if err != nil {
		return Schema{}, err
	}
	var keys []struct {
		Key string `json:"sorting_key"`
	}
	if err := unmarshalAll([]byte(s.Result.Rows), &s.Columns, []byte(key.Rows), &keys); err != nil {
		return Schema{}, failure(fault.Upstream, err, "the engine's description of the log table can't be read")
	}
	if len(s.Columns) == 0 {
		return Schema{}, failure(fault.Unavailable, nil, "the engine has no table otel.otel_logs, or its user may not see it")
	}
	if len(keys) > 0 { // the user may see the table over shards and not what they have
		s.SortingKey = keys[0].Key
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schema, c.until = s, time.Now().Add(fresh)
	c.schema.Result = Result{} // the caller may free the result
	return s, nil
}

func unmarshalAll(columns []byte, into *[]TableColumn, keys []byte, intoKeys any) error {
	if err := json.Unmarshal(columns, into); err != nil {
		return err
	}
	return json.Unmarshal(keys, intoKeys)
}
