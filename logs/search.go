package logs

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"sandbox/logs/clickhouse"
)

// A search reads the newest part of its interval first, and then ever wider
// parts before it, until it has enough rows. So most searches need not sort
// seven days.
const (
	firstWindow = 5 * time.Minute // the width of the table's key
	widening    = 6               // seven days are seven windows
)

// search returns the newest rows.
func (s *Service) search(ctx context.Context, f Filter, schema clickhouse.Schema, p *purse) (Result, error) {
	r := Result{QueryID: uuid.NewString()}
	to, width := f.To, firstWindow
	for n := 1; ; n++ {
		from := to.Add(-width)
		if from.Before(f.From) {
			from = f.From
		}
		q := f.search(schema, from, to, f.Limit-r.Count)
		q.Limits, q.QueryID = p.left(), r.QueryID
		if n > 1 {
			q.QueryID += "-" + strconv.Itoa(n)
		}
		part, err := s.Engine.Query(ctx, q)
		if err != nil {
			return Result{}, err
		}
		r.add(part)
		p.pay(part)
		if r.Count >= f.Limit || !from.After(f.From) {
			return r, nil
		}
		to, width = from, width*widening
	}
}
