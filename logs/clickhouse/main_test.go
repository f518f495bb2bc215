package clickhouse_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/test/leak"
	"sandbox/test/programs"
)

// engine is the engine that the tests of this package query. If the environment
// names a server, it is that one, and its user must be allowed to insert into
// otel.otel_logs. Otherwise it is one embedded engine for all tests.
var engine *clickhouse.Client

func TestMain(m *testing.M) { os.Exit(leak.Run(suite{m})) }

type suite struct{ m *testing.M }

func (s suite) Run() int {
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return s.m.Run() // asks no engine, in many processes
	}
	stop, err := open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return s.m.Run()
}

func open() (stop func(), err error) {
	if dsn := os.Getenv("SANDBOX_TEST_CLICKHOUSE_DSN"); dsn != "" {
		engine, err = clickhouse.Open(dsn)
		return func() { _ = engine.Close() }, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		return nil, err
	}
	e, err := embedded.Start(ctx, embedded.Options{Dir: dir, HelperDir: programs.Dir()})
	if err != nil {
		return nil, err
	}
	if err := e.Wait(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	engine, err = clickhouse.Dial(e.Dial)
	return func() { _, _, _ = engine.Close(), e.Close(), os.RemoveAll(dir) }, err
}
