package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/BurntSushi/toml"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/logs"
	"sandbox/logs/boxlog"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/logs/ingest"
	"sandbox/metrics"
	"sandbox/spool"
)

// Logs is the table [logs] of the configuration file. A setting that is left out,
// or is 0, has its default.
type Logs struct {
	Keep   time.Duration `toml:"keep"`          // how long the embedded engine keeps a row
	Memory int64         `toml:"engine_memory"` // bytes that the embedded engine may use
	Budget Budget        `toml:"budget"`
}

// Budget is the table [logs.budget]; [logs.Budget] explains its settings.
type Budget struct {
	Time        time.Duration `toml:"time"`
	ReadRows    int64         `toml:"read_rows"`
	ReadBytes   int64         `toml:"read_bytes"`
	Memory      int64         `toml:"memory"`
	ResultRows  int64         `toml:"result_rows"`
	ResultBytes int64         `toml:"result_bytes"`
	Queries     int           `toml:"queries"`
	PerMinute   int           `toml:"queries_per_minute"`
}

// Read reads the table, which has been decoded as TOML already, into l. It returns
// an error that names a setting that does not exist.
func (l *Logs) Read(table any) error { return readTable(table, l) }

func readTable(table, into any) error {
	var text bytes.Buffer
	if _, ok := table.(map[string]any); !ok {
		return errors.New("want a table")
	}
	if err := toml.NewEncoder(&text).Encode(table); err != nil {
		return err
	}
	known, err := toml.NewDecoder(&text).Decode(into)
	if err == nil && len(known.Undecoded()) > 0 {
		err = fmt.Errorf("there is no setting %s", known.Undecoded()[0])
	}
	return err
}

// budget returns the budget with defaults for the settings that are 0.
func (b Budget) budget() logs.Budget {
	d := logs.DefaultBudget()
	set(&d.Time, b.Time)
	set(&d.ReadRows, b.ReadRows)
	set(&d.ReadBytes, b.ReadBytes)
	set(&d.Memory, b.Memory)
	set(&d.ResultRows, b.ResultRows)
	set(&d.ResultBytes, b.ResultBytes)
	set(&d.Queries, b.Queries)
	set(&d.PerMinute, b.PerMinute)
	return d
}

func set[T comparable](to *T, value T) {
	if value != *new(T) {
		*to = value
	}
}

// logEngine is the log service with the engines that it reads from and writes to.
type logEngine struct {
	service  *logs.Service
	reader   *clickhouse.Client // nil when there is no engine
	embedded *embedded.Engine   // nil with a server, or when there is no engine
	inserter *clickhouse.Client // nil when rows are written through reader, or not at all
	writer   *ingest.Writer     // nil when no logs are stored
	boxes    *boxlog.Recorder   // nil when boxes' events and output are not stored
	metrics  *clickhouse.Client // has the table of boxes' metrics; nil when these are not stored, as events are not
}

// serverLate is how long a server may take to store rows whose sender was killed: many
// times what it takes on a busy machine. Rows of main commands wait for so long after that.
const serverLate = 10 * time.Second

// openLogs opens the log service. It starts the embedded engine but does not wait
// until it is ready, because boxes work without it. When the engine can't be
// started, queries are answered with the reason. Errors: Config.
func (s settings) openLogs(ctx context.Context, host *local.Host, log *slog.Logger) (e logEngine, err error) {
	c := logs.Config{Budget: s.Logs.Budget.budget(), Table: s.LogsTable}
	defer func() {
		if err != nil {
			e, err = logEngine{}, errors.Join(err, e.Close(ctx))
		}
	}()
	if s.ClickHouseDSN != "" {
		e.reader, err = clickhouse.Open(s.ClickHouseDSN)
	} else if e.embedded, c.Missing = s.startEngine(ctx, log); e.embedded != nil {
		if e.reader, err = clickhouse.Dial(e.embedded.Dial); err == nil {
			e.reader.OnDamage(e.embedded.Mend)
		}
	}
	if fault.Is(c.Missing, fault.Config) {
		err = c.Missing
	}
	if err != nil {
		return e, err
	}
	if err := e.openWriter(s.ClickHouseWriteDSN); err != nil {
		return e, err
	}
	if e.writer != nil && (e.embedded != nil || s.LogOutput) {
		e.metrics = cmp.Or(e.inserter, e.reader) // the user who reads logs needs no right to more
		late := serverLate
		if e.embedded != nil {
			late = 0 // it ends with this process
		}
		e.boxes = boxlog.New(boxlog.Config{
			Writer: e.writer, Log: log, Name: boxName(host.Runtime),
			Mains: host.Mains, Engine: e.reader, Positions: filepath.Join(s.Home, "daemon", "mains"), Late: late,
		})
	}
	c.Engine = e.reader
	e.service, err = logs.New(c)
	return e, err
}

// openWriter opens the connection that rows are written through: to the server of
// dsn, or to the embedded engine if dsn is "". With neither, no logs are stored.
// Errors: Config.
func (e *logEngine) openWriter(dsn string) error {
	switch {
	case dsn != "":
		var err error
		if e.inserter, err = clickhouse.Open(dsn); err != nil {
			return fault.Wrap(fault.Config, err, "--clickhouse-write-dsn")
		}
		e.writer = ingest.NewWriter(e.inserter)
	case e.embedded != nil:
		e.writer = ingest.NewWriter(e.reader)
	}
	return nil
}

// startEngine starts the embedded engine.
func (s settings) startEngine(ctx context.Context, log *slog.Logger) (*embedded.Engine, error) {
	e, err := embedded.Start(ctx, embedded.Options{
		Dir: filepath.Join(s.Home, "logs"), HelperDir: os.Getenv("SANDBOX_HELPER_DIR"), Beside: s.Beside, Library: s.ChdbLib,
		TTL: s.Logs.Keep, Memory: s.Logs.Memory, Logger: log,
	})
	if err != nil {
		log.Warn("there is no log engine: log queries are answered with 503", "error", fault.Of(err).Message)
		return nil, err
	}
	return e, nil
}

// openHistory begins to measure boxes, unless it is not wanted.
func (s settings) openHistory(e logEngine, runtime *core.Runtime, log *slog.Logger) *metrics.History {
	if s.MetricsInterval == 0 {
		return nil
	}
	return metrics.Start(metrics.Config{Measure: runtime.Measure, Interval: s.MetricsInterval, Engine: e.metrics, Log: log})
}

// boxName returns a function that returns the name of a box by its id, or "".
func boxName(runtime *core.Runtime) func(context.Context, string) string {
	return func(ctx context.Context, id string) string {
		rec, err := runtime.Find(ctx, id)
		if err != nil {
			return ""
		}
		return rec.Options.Name
	}
}

// lines returns the function that the server calls with each exec whose output is
// not in the spool, or nil if output is not stored as logs.
func (e logEngine) lines() func(api.Exec) (add func(stderr bool, p []byte), end func()) {
	if e.boxes == nil {
		return nil
	}
	return e.boxes.Live
}

// follow returns the function that the spool calls with each new exec, or nil if
// output is not stored as logs.
func (e logEngine) follow() func(*spool.Exec) {
	if e.boxes == nil {
		return nil
	}
	return e.boxes.Follow
}

// lastRows bounds how long Close waits until the last rows of boxes are stored, and
// until the last samples of what they used are.
const lastRows = 2 * time.Second

// Close stores the rows that are left, closes the connections, and ends the
// embedded engine. The rows have a time of their own, since requests in flight may have
// taken all of ctx.
func (e logEngine) Close(ctx context.Context) error {
	var errs []error
	if e.boxes != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRows)
		e.boxes.Close(ctx)
		cancel()
	}
	if e.writer != nil {
		e.writer.Close()
	}
	if e.inserter != nil {
		errs = append(errs, e.inserter.Close())
	}
	if e.reader != nil {
		errs = append(errs, e.reader.Close())
	}
	if e.embedded != nil {
		errs = append(errs, e.embedded.Close())
	}
	return errors.Join(errs...)
}
