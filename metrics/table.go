package metrics

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/go-json-experiment/json"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
)

// tableName is the name of the table, in the database otel.
const tableName = "sandbox_metrics"

// Limits of the work of the engine.
const (
	maxPending = 1 << 17 // samples that wait while it takes none: 20 minutes of 1,000 boxes at 10 s
	insertTime = 5 * time.Second
	readTime   = 10 * time.Second
	readBytes  = 16 << 20 // of an answer
)

// table keeps samples as rows of the log engine.
type table struct {
	engine *clickhouse.Client
	log    *slog.Logger

	pending []Sample // what the engine has not taken yet; add alone uses it
	failing bool     // as the log knows; likewise
}

func (t *table) add(ctx context.Context, samples []Sample) {
	t.pending = append(t.pending, samples...)
	if len(t.pending) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, insertTime)
	defer cancel()
	err := t.insert(ctx, t.pending)
	if err == nil {
		t.pending, t.failing = nil, false
		return
	}
	if !t.failing && !fault.Is(err, fault.Canceled) {
		t.failing = true
		t.log.Warn("metrics of boxes wait for the log engine", "error", err)
	}
	if n := len(t.pending) - maxPending; n > 0 {
		t.log.Warn("metrics of boxes were left out: the log engine takes none", "samples", n)
		t.pending = slices.Delete(t.pending, 0, n)
	}
}

// insert stores rows in the engine's format Native, which names the types of the
// columns.
func (t *table) insert(ctx context.Context, samples []Sample) error {
	b := newColumns()
	for i := range samples {
		b.add(&samples[i])
	}
	var out proto.Buffer
	// A body over HTTP is always of revision 0.
	if err := (&proto.Block{Rows: len(samples), Columns: len(b.input)}).EncodeRawBlock(&out, 0, b.input); err != nil {
		return fault.Wrap(fault.Internal, err, "encode metrics")
	}
	names := make([]string, len(b.input))
	for i, c := range b.input {
		names[i] = c.Name
	}
	return t.engine.Insert(ctx, clickhouse.Insertion{
		Table: tableName, Columns: names, Format: "Native", Body: bytes.NewReader(out.Buf),
		Settings: map[string]string{"throw_on_max_partitions_per_insert_block": "0"},
	})
}

// columns holds rows, column by column.
type columns struct {
	at, started                              proto.ColDateTime64
	box                                      proto.ColStr
	cpu, memory, cache, processes            proto.ColInt64
	disk, diskRead, diskWrite, sent, receive proto.ColNullable[int64]
	input                                    proto.Input
}

func newColumns() *columns {
	c := &columns{}
	c.at.WithPrecision(proto.PrecisionMilli)
	c.started.WithPrecision(proto.PrecisionMilli)
	for _, n := range []*proto.ColNullable[int64]{&c.disk, &c.diskRead, &c.diskWrite, &c.sent, &c.receive} {
		*n = *proto.NewColNullable(new(proto.ColInt64))
	}
	c.input = proto.Input{
		{Name: "at", Data: &c.at}, {Name: "box_id", Data: &c.box}, {Name: "started_at", Data: &c.started},
		{Name: "cpu_nanoseconds", Data: &c.cpu}, {Name: "memory_bytes", Data: &c.memory}, {Name: "memory_cache_bytes", Data: &c.cache},
		{Name: "processes", Data: &c.processes}, {Name: "disk_bytes", Data: &c.disk},
		{Name: "disk_bytes_read", Data: &c.diskRead}, {Name: "disk_bytes_written", Data: &c.diskWrite},
		{Name: "network_bytes_sent", Data: &c.sent}, {Name: "network_bytes_received", Data: &c.receive},
	}
	return c
}

func (c *columns) add(s *Sample) {
	c.at.AppendRaw(proto.DateTime64(s.At))
	c.box.Append(s.Box)
	c.started.AppendRaw(proto.DateTime64(s.Started))
	c.cpu.Append(s.CPU)
	c.memory.Append(s.Memory)
	c.cache.Append(s.Cache)
	c.processes.Append(s.Processes)
	for column, n := range map[*proto.ColNullable[int64]]int64{
		&c.disk: s.Disk, &c.diskRead: s.DiskRead, &c.diskWrite: s.DiskWrite, &c.sent: s.NetSent, &c.receive: s.NetReceive,
	} {
		column.Append(proto.Nullable[int64]{Set: n != Unknown, Value: max(n, 0)})
	}
}

// folded is the statement that reads what fold makes of the rows of a box.
const folded = `SELECT toUnixTimestamp64Milli(max(at)) AS last, toUnixTimestamp64Milli(argMax(started_at, at)) AS started,
    argMax(cpu_nanoseconds, at) AS cpu, max(memory_bytes) AS memory, max(memory_cache_bytes) AS cache, max(processes) AS tasks,
    ifNull(max(disk_bytes), -1) AS disk, ifNull(argMax(disk_bytes_read, at), -1) AS disk_read, ifNull(argMax(disk_bytes_written, at), -1) AS disk_write,
    ifNull(argMax(network_bytes_sent, at), -1) AS net_sent, ifNull(argMax(network_bytes_received, at), -1) AS net_receive
FROM otel.sandbox_metrics
WHERE box_id = {box:String} AND at >= fromUnixTimestamp64Milli({from:Int64}) AND at < fromUnixTimestamp64Milli({to:Int64})
GROUP BY intDiv(toUnixTimestamp64Milli(at), {step:Int64}) ORDER BY last`

// row is a row of the answer. The engine writes whole numbers of 64 bits as strings.
type row struct {
	Last       int64 `json:"last,string"`
	Started    int64 `json:"started,string"`
	CPU        int64 `json:"cpu,string"`
	Memory     int64 `json:"memory,string"`
	Cache      int64 `json:"cache,string"`
	Tasks      int64 `json:"tasks,string"`
	Disk       int64 `json:"disk,string"`
	DiskRead   int64 `json:"disk_read,string"`
	DiskWrite  int64 `json:"disk_write,string"`
	NetSent    int64 `json:"net_sent,string"`
	NetReceive int64 `json:"net_receive,string"`
}

func (t *table) read(ctx context.Context, s span) ([]Sample, error) {
	r, err := t.engine.Query(ctx, clickhouse.Request{
		SQL: folded,
		Params: map[string]string{
			"box": s.box, "from": strconv.FormatInt(s.from, 10), "to": strconv.FormatInt(s.to, 10), "step": strconv.FormatInt(s.step, 10),
		},
		Limits: clickhouse.Limits{Time: readTime, ResultBytes: readBytes},
	})
	if err != nil {
		return nil, unread(err)
	}
	defer r.Free()
	var rows []row
	if err := json.Unmarshal(r.Rows, &rows); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "the log engine's metrics can't be read")
	}
	samples := make([]Sample, len(rows))
	for i, r := range rows {
		samples[i] = Sample{
			Box: s.box, At: r.Last, Started: r.Started, CPU: r.CPU, Memory: r.Memory, Cache: r.Cache, Processes: r.Tasks,
			Disk: r.Disk, DiskRead: r.DiskRead, DiskWrite: r.DiskWrite, NetSent: r.NetSent, NetReceive: r.NetReceive,
		}
	}
	return samples, nil
}

// unread rewords the failure of a statement that no caller wrote: if the engine calls
// it wrong, its table is missing or another one.
func unread(err error) error {
	if fault.Is(err, fault.SQLError) || clickhouse.UnknownTable(err) {
		return &fault.Error{Kind: fault.Unavailable, Hidden: err,
			Message: "the log engine has no table otel.sandbox_metrics as docs/clickhouse.md defines it"}
	}
	return err
}
