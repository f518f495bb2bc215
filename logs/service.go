package logs

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
	"sandbox/logs/sql"
)

// Config holds what a service is made from.
type Config struct {
	// Engine answers the queries. It is nil when there is no engine; then
	// Missing says why.
	Engine  *clickhouse.Client
	Missing error
	Budget  Budget
	// Table is an additional name, "TABLE" or "DATABASE.TABLE", that means the
	// log table in statements; "" for none.
	Table string
}

// Service answers the four operations. Its methods may be called from any
// goroutine; each returns a whole result or a classified failure.
type Service struct {
	Config
	meter   meter
	running chan struct{}
	tables  []sql.TableName
}

// New makes a service. Errors: Config.
func New(c Config) (*Service, error) {
	if err := c.Budget.Check(); err != nil {
		return nil, err
	}
	s := &Service{Config: c, running: make(chan struct{}, c.Budget.Queries)}
	if c.Table != "" {
		name, err := sql.ParseTableName(c.Table)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "the log table's name")
		}
		s.tables = append(s.tables, name)
	}
	return s, nil
}

// Admit counts an operation of a key, whether or not the operation then
// succeeds. It must be called before each operation. Errors: RateLimited.
func (s *Service) Admit(key string) (Allowance, error) {
	a, ok := s.meter.take(key, s.Budget.PerMinute, time.Now())
	if !ok {
		return a, &fault.Error{Kind: fault.RateLimited, RetryAfter: a.Next,
			Message: fmt.Sprintf("the key has used all its queries: it has %d a minute", a.Limit)}
	}
	return a, nil
}

// Describe returns a description of the log table, one row per column.
func (s *Service) Describe(ctx context.Context) (Result, error) {
	return s.run(ctx, func(ctx context.Context, p *purse) (Result, error) {
		schema, err := s.Engine.Describe(ctx, p.left())
		return whole(uuid.NewString(), schema.Result), overBudget(notTheirs(err))
	})
}

// overBudget rewords the failure of a description that costs more than the
// budget allows: the client can do nothing about it.
func overBudget(err error) error {
	if fault.Is(err, fault.BudgetExceeded) || fault.Is(err, fault.ResultTooLarge) {
		return fault.Wrap(fault.Unavailable, err, "the budget is too small to describe the table")
	}
	return err
}

// Query runs the statement of a body.
func (s *Service) Query(ctx context.Context, doc []byte) (Result, error) {
	st, err := decodeStatement(doc, s.tables)
	if err != nil {
		return Result{}, err
	}
	return s.run(ctx, func(ctx context.Context, p *purse) (Result, error) {
		r, err := s.Engine.Query(ctx, clickhouse.Request{SQL: st.sql, Params: st.params, Literals: st.literals, Limits: p.left()})
		return whole(r.QueryID, r), err
	})
}

// Search returns the newest rows that match the filter of a body.
func (s *Service) Search(ctx context.Context, doc []byte) (Result, error) {
	f, err := decodeSearch(doc)
	if err != nil {
		return Result{}, err
	}
	return s.run(ctx, func(ctx context.Context, p *purse) (Result, error) {
		return withSchema(ctx, s.Engine, func(schema clickhouse.Schema) (Result, error) {
			return s.search(ctx, f, schema, p)
		})
	})
}

// Aggregate counts the rows that match the filter of a body.
func (s *Service) Aggregate(ctx context.Context, doc []byte) (Result, error) {
	g, err := decodeAggregate(doc)
	if err != nil {
		return Result{}, err
	}
	return s.run(ctx, func(ctx context.Context, p *purse) (Result, error) {
		return withSchema(ctx, s.Engine, func(schema clickhouse.Schema) (Result, error) {
			r := g.aggregate(schema)
			r.Limits = p.left()
			res, err := s.Engine.Query(ctx, r)
			return whole(res.QueryID, res), err
		})
	})
}

// withSchema runs a query that is built for the table's columns. It runs it
// once more if the engine says that the columns have changed.
func withSchema(ctx context.Context, engine *clickhouse.Client, run func(clickhouse.Schema) (Result, error)) (Result, error) {
	for again := false; ; again = true {
		schema, err := engine.Schema(ctx)
		if err != nil {
			return Result{}, err
		}
		res, err := run(schema)
		if again || !clickhouse.UnknownColumn(err) {
			return res, notTheirs(err)
		}
	}
}

// notTheirs rewords the failure of a statement that the service wrote and not
// the caller: if the engine calls it wrong, the table is not as the service
// needs it.
func notTheirs(err error) error {
	if !fault.Is(err, fault.SQLError) {
		return err
	}
	return fault.Wrap(fault.Upstream, err, "the log table differs from the one that OpenTelemetry defines")
}

// run waits for one of the places of running queries, and then runs a query
// within the budget.
func (s *Service) run(ctx context.Context, query func(context.Context, *purse) (Result, error)) (Result, error) {
	if s.Engine == nil {
		return Result{}, missing(s.Missing)
	}
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		return Result{}, &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Second,
			Message: fmt.Sprintf("%d queries are running, which is the most at once: try again when one has ended", s.Budget.Queries)}
	}
	return query(ctx, s.Budget.purse())
}

// prerequisite names both ways to get an engine.
const prerequisite = "run `make deps-logs` to fetch the embedded engine, or start the server with --chdb-lib PATH; " +
	"or name a ClickHouse server with --clickhouse-dsn http://USER:PASSWORD@HOST:8123"

func missing(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "the server has no log engine", Prerequisite: prerequisite, Hidden: err}
}
