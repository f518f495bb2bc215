package logs

import (
	"time"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
)

// Budget bounds what queries may cost. A query that goes over it fails.
type Budget struct {
	Time        time.Duration // the longest that one query may run
	ReadRows    int64
	ReadBytes   int64
	Memory      int64 // bytes
	ResultRows  int64 // at most MaxLimit
	ResultBytes int64
	Queries     int // how many run at once, of all keys together
	PerMinute   int // queries of one key; refused ones count
}

// DefaultBudget returns the budget that the contract prescribes.
func DefaultBudget() Budget {
	return Budget{
		Time: 30 * time.Second, ReadRows: 1e9, ReadBytes: 20 << 30, Memory: 2 << 30,
		ResultRows: MaxLimit, ResultBytes: 64 << 20, Queries: 8, PerMinute: 600,
	}
}

// Check refuses a budget in which a bound is missing, or which would let no
// query run. Errors: Config.
func (b Budget) Check() error {
	if b.Time <= 0 || b.ReadRows <= 0 || b.ReadBytes <= 0 || b.Memory <= 0 || b.ResultRows <= 0 || b.ResultBytes <= 0 || b.Queries <= 0 || b.PerMinute <= 0 {
		return fault.New(fault.Config, "the budget of log queries: every limit must be positive")
	}
	if b.ResultRows > MaxLimit {
		return fault.New(fault.Config, "the budget of log queries: a result has at most %d rows", MaxLimit)
	}
	return nil
}

// A purse holds what is left of a budget while one operation sends the engine
// several queries.
type purse struct {
	clickhouse.Limits
	until time.Time
}

func (b Budget) purse() *purse {
	return &purse{until: time.Now().Add(b.Time), Limits: clickhouse.Limits{
		Time: b.Time, ReadRows: b.ReadRows, ReadBytes: b.ReadBytes, Memory: b.Memory,
		ResultRows: b.ResultRows, ResultBytes: b.ResultBytes,
	}}
}

// left returns the limits of the next query. No limit is 0, because 0 would
// mean that there is no limit.
func (p *purse) left() clickhouse.Limits {
	l := p.Limits
	l.Time = max(time.Until(p.until), time.Millisecond)
	return l
}

// pay subtracts what a result has cost.
func (p *purse) pay(r clickhouse.Result) {
	p.ReadRows = max(p.ReadRows-int64(r.Statistics.ReadRows), 1)
	p.ReadBytes = max(p.ReadBytes-int64(r.Statistics.ReadBytes), 1)
	p.ResultRows = max(p.ResultRows-int64(r.Count), 1)
	p.ResultBytes = max(p.ResultBytes-int64(len(r.Rows)), 1)
}
