package ingest

import (
	"encoding/hex"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Row is a row of the log table.
type Row struct {
	Nanoseconds     int64 // since 1970
	TraceID, SpanID string
	Flags, Severity uint8
	SeverityText    string
	Service, Body   string
	Resource        Resource
	Scope           Scope
	Attributes      []Pair
	EventName       string
}

// Resource holds what the rows of one source have in common.
type Resource struct {
	SchemaURL  string
	Attributes []Pair
}

// Scope holds what the rows of one part of a source have in common.
type Scope struct {
	SchemaURL, Name, Version string
	Attributes               []Pair
}

// Pair is an attribute.
type Pair struct{ Key, Value string }

// each calls add for every record that can be stored, and returns how many
// can't be stored. The columns are the ones that the Collector's exporter for
// ClickHouse makes of a record.
func each(logs plog.Logs, add func(*Row)) (refused int) {
	for _, r := range logs.ResourceLogs().All() {
		attributes := r.Resource().Attributes()
		row := Row{Resource: Resource{SchemaURL: r.SchemaUrl(), Attributes: pairs(attributes)}}
		if name, ok := attributes.Get("service.name"); ok {
			row.Service = name.AsString()
		}
		for _, s := range r.ScopeLogs().All() {
			scope := s.Scope()
			row.Scope = Scope{SchemaURL: s.SchemaUrl(), Name: scope.Name(), Version: scope.Version(), Attributes: pairs(scope.Attributes())}
			for _, l := range s.LogRecords().All() {
				if row.record(l) {
					add(&row)
				} else {
					refused++
				}
			}
		}
	}
	return refused
}

// record copies a record's own members into the row. It returns false if the
// table can't hold the record's time.
func (r *Row) record(l plog.LogRecord) bool {
	at := l.Timestamp()
	if at == 0 {
		at = l.ObservedTimestamp()
	}
	r.Nanoseconds = int64(at)
	r.TraceID, r.SpanID = "", ""
	if id := l.TraceID(); !id.IsEmpty() {
		r.TraceID = hex.EncodeToString(id[:])
	}
	if id := l.SpanID(); !id.IsEmpty() {
		r.SpanID = hex.EncodeToString(id[:])
	}
	r.Flags, r.Severity, r.SeverityText = uint8(l.Flags()), uint8(l.SeverityNumber()), l.SeverityText()
	r.Body, r.Attributes, r.EventName = l.Body().AsString(), pairs(l.Attributes()), l.EventName()
	return at <= math.MaxInt64
}

// pairs returns attributes as text. If several have the same key, the last one
// counts.
func pairs(m pcommon.Map) []Pair {
	list := make([]Pair, 0, m.Len())
	var places map[string]int // index of each key; nil for a few attributes, where a search is faster
	if m.Len() > 16 {
		places = make(map[string]int, m.Len())
	}
	for key, value := range m.All() {
		p := Pair{key, value.AsString()}
		at, again := places[key]
		if places == nil {
			at = slices.IndexFunc(list, func(o Pair) bool { return o.Key == key })
			again = at >= 0
		}
		if again {
			list[at] = p
			continue
		}
		if places != nil {
			places[key] = len(list)
		}
		list = append(list, p)
	}
	return list
}
