package clickhouse

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// Insertion holds rows to be stored in a table.
type Insertion struct {
	Table    string            // of the database otel; "" for the log table
	Columns  []string          // of the rows; empty for all columns, in the table's order
	Format   string            // of Body, such as JSONEachRow, RowBinary or Native
	Body     io.Reader         // read to its end. When a read fails, nothing of its last block is stored. The context does not end a read that blocks
	Settings map[string]string // of the engine
}

// Insert stores rows. When it returns nil, the engine has written them to its
// disk. Errors: as Query.
func (c *Client) Insert(ctx context.Context, i Insertion) error {
	settings := clickhouse.Settings{
		"async_insert":            0,
		"insert_distributed_sync": 1, // a table over shards has sent them their rows
	}
	for name, value := range i.Settings {
		settings[name] = value
	}
	with := clickhouse.Context(endless{ctx}, clickhouse.WithQueryID(uuid.NewString()), clickhouse.WithSettings(settings))
	err := c.again(func() error {
		return c.conn.InsertFormat(with, i.Format, "INSERT INTO otel."+cmp.Or(i.Table, "otel_logs")+list(i.Columns), i.Body)
	})
	if err == nil {
		return nil
	}
	if UnknownColumn(err) {
		c.Forget()
	}
	return classify(ctx, ctx, err)
}

// list returns the columns in the syntax of an INSERT.
func list(columns []string) string {
	if len(columns) == 0 {
		return ""
	}
	quoted := make([]string, len(columns))
	for i, name := range columns {
		quoted[i] = "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
	}
	return " (" + strings.Join(quoted, ", ") + ")"
}
