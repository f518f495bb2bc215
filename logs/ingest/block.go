package ingest

import (
	"strings"

	"github.com/ClickHouse/ch-go/proto"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
)

// maxBlock bounds the rows of one request. They may be far larger than the
// request, because the attributes of a resource are repeated in each of its
// rows.
const maxBlock = 64 << 20

// block holds rows that are being built, column by column.
type block struct {
	rows, size                                      int
	at                                              proto.ColDateTime64
	trace, span, severityText, service, body, event proto.ColStr
	flags, severity                                 proto.ColUInt8
	resourceURL, scopeURL, scopeName, scopeVersion  proto.ColStr
	resource, scope, attributes                     attributeColumn
}

// attributeColumn is a column of the type Map(String, String).
type attributeColumn = proto.ColMap[string, string]

func newBlock() *block {
	b := &block{}
	b.at.WithPrecision(proto.PrecisionNano)
	for _, m := range []*attributeColumn{&b.resource, &b.scope, &b.attributes} {
		*m = *proto.NewMap[string, string](new(proto.ColStr), new(proto.ColStr))
	}
	return b
}

// add adds a row. A row that would exceed the block's bound is not added: only
// its size is counted, and then batch fails.
func (b *block) add(r *Row) {
	b.size += len(r.Body) + len(r.Service) + 100 + size(r.Resource.Attributes) + size(r.Scope.Attributes) + size(r.Attributes)
	if b.size > maxBlock {
		return
	}
	b.rows++
	b.at.AppendRaw(proto.DateTime64(r.Nanoseconds))
	b.trace.Append(r.TraceID)
	b.span.Append(r.SpanID)
	b.flags.Append(r.Flags)
	b.severity.Append(r.Severity)
	b.severityText.Append(r.SeverityText)
	b.service.Append(r.Service)
	b.body.Append(r.Body)
	b.resourceURL.Append(r.Resource.SchemaURL)
	appendPairs(&b.resource, r.Resource.Attributes)
	b.scopeURL.Append(r.Scope.SchemaURL)
	b.scopeName.Append(r.Scope.Name)
	b.scopeVersion.Append(r.Scope.Version)
	appendPairs(&b.scope, r.Scope.Attributes)
	appendPairs(&b.attributes, r.Attributes)
	b.event.Append(r.EventName)
}

func size(list []Pair) (n int) {
	for _, p := range list {
		n += len(p.Key) + len(p.Value)
	}
	return n
}

func appendPairs(c *attributeColumn, list []Pair) {
	for _, p := range list {
		c.Keys.Append(p.Key)
		c.Values.Append(p.Value)
	}
	c.Offsets.Append(uint64(c.Keys.Rows()))
}

// columns returns the columns of OpenTelemetry's table, each with the block's
// data for it.
func (b *block) columns() proto.Input {
	return proto.Input{
		{Name: "Timestamp", Data: &b.at}, {Name: "TraceId", Data: &b.trace}, {Name: "SpanId", Data: &b.span},
		{Name: "TraceFlags", Data: &b.flags}, {Name: "SeverityText", Data: &b.severityText}, {Name: "SeverityNumber", Data: &b.severity},
		{Name: "ServiceName", Data: &b.service}, {Name: "Body", Data: &b.body},
		{Name: "ResourceSchemaUrl", Data: &b.resourceURL}, {Name: "ResourceAttributes", Data: &b.resource},
		{Name: "ScopeSchemaUrl", Data: &b.scopeURL}, {Name: "ScopeName", Data: &b.scopeName}, {Name: "ScopeVersion", Data: &b.scopeVersion},
		{Name: "ScopeAttributes", Data: &b.scope}, {Name: "LogAttributes", Data: &b.attributes}, {Name: "EventName", Data: &b.event},
	}
}

// batch holds rows in the engine's format Native. The format names the types of
// the columns, so the engine converts them for a table whose types differ.
type batch struct {
	columns []string
	rows    int
	text    []byte
}

// batch returns the block's rows for a table with the given schema. Errors:
// TooLarge.
func (b *block) batch(s clickhouse.Schema) (batch, error) {
	if b.size > maxBlock {
		return batch{}, fault.New(fault.TooLarge, "the records take more than %d bytes as rows, since each row repeats the attributes of its resource: send fewer at once", maxBlock)
	}
	var input proto.Input
	var names []string
	for _, c := range b.columns() {
		if s.Has(c.Name) {
			input, names = append(input, c), append(names, c.Name)
		}
	}
	var out proto.Buffer
	out.Buf = make([]byte, 0, b.size+b.size/8)
	// A body over HTTP is always of revision 0.
	if err := (&proto.Block{Rows: b.rows, Columns: len(input)}).EncodeRawBlock(&out, 0, input); err != nil {
		return batch{}, fault.Wrap(fault.Internal, err, "encode rows")
	}
	return batch{names, b.rows, out.Buf}, nil
}

// fits reports whether two batches can be sent as one.
func (b batch) fits(other batch) bool {
	return strings.Join(b.columns, ",") == strings.Join(other.columns, ",")
}
