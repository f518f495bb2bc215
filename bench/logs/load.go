package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"golang.org/x/sync/errgroup"
)

// The size and shape of the load that is sent to be stored.
const (
	payloads   = 100
	perPayload = 5000 // records
	senders    = 10   // as a Collector has by default
)

// payload returns a request that stores logs.
func payload(seed int) ([]byte, error) {
	logs := plog.NewLogs()
	r := logs.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", fmt.Sprint("ingest-", seed%8))
	r.Resource().Attributes().PutStr("host.name", "host-1")
	list := r.ScopeLogs().AppendEmpty().LogRecords()
	now := time.Now()
	for i := range perPayload {
		l := list.AppendEmpty()
		l.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Duration(i) * time.Microsecond)))
		l.SetSeverityNumber(plog.SeverityNumberInfo)
		l.SetSeverityText("INFO")
		l.SetTraceID([16]byte{byte(seed), byte(i), byte(i >> 8), 1})
		l.Body().SetStr(fmt.Sprintf("request %d of user %d for /api/v1/items/%d took %d ms", i, i*7919%100000, i%1000, i%2000))
		l.Attributes().PutStr("http.method", "GET")
		l.Attributes().PutInt("http.status_code", 200)
		l.Attributes().PutStr("user.id", fmt.Sprint(i*7919%100000))
	}
	return (&plog.ProtoMarshaler{}).MarshalLogs(logs)
}

// ingest stores records through the gateway, and then the same rows directly in
// the engine, in the engine's own format and in one body.
func (l *lab) ingest(ctx context.Context) error {
	made := time.Now()
	bodies := make([][]byte, payloads)
	for i := range bodies {
		var err error
		if bodies[i], err = payload(i); err != nil {
			return err
		}
	}
	generator := time.Since(made)
	before, start := cpu(l.daemon), time.Now()
	var next atomic.Int64
	group, sending := errgroup.WithContext(ctx)
	for range senders {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < payloads; i = next.Add(1) - 1 {
				if _, err := post(sending, l.gateway, "http://gateway/v1/logs", "application/x-protobuf", bodies[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	ours, used := time.Since(start), cpu(l.daemon)-before
	rows, err := l.raw(ctx, "SELECT * FROM otel.otel_logs WHERE startsWith(ServiceName, 'ingest-') FORMAT Native")
	if err != nil {
		return err
	}
	start = time.Now()
	if _, err := post(ctx, l.engine, "http://engine/?query=INSERT+INTO+otel.otel_logs+FORMAT+Native", "", rows); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	theirs := time.Since(start)
	rate := func(d time.Duration) float64 { return payloads * perPayload / d.Seconds() }
	fmt.Printf("ingest of %d records: gateway %.0f/s (%.2f s of the daemon's CPU), engine %.0f/s: %.2f x (bar: 0.3); encoded beforehand in %.2f s\n",
		payloads*perPayload, rate(ours), used.Seconds(), rate(theirs), rate(ours)/rate(theirs), generator.Seconds())
	return nil
}

// clients is how many clients send queries at once. It is six times as many
// queries as may run at once.
const clients = 50

// together lets clients send, all at once, a query whose answer is known.
func (l *lab) together(ctx context.Context) error {
	want, err := l.raw(ctx, "SELECT ServiceName, count() FROM otel.otel_logs WHERE startsWith(ServiceName, 'service-') GROUP BY ServiceName")
	if err != nil {
		return err
	}
	counts := map[string]string{}
	for line := range strings.Lines(string(want)) {
		service, n, _ := strings.Cut(strings.TrimSpace(line), "\t")
		counts[service] = n
	}
	var right, busy, wrong atomic.Int64
	ctx, cancel := context.WithTimeout(ctx, l.crowd)
	defer cancel()
	var asking sync.WaitGroup
	for i := range clients {
		asking.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				switch err := l.check(ctx, fmt.Sprint("service-", n%20), counts); {
				case err == nil:
					right.Add(1)
				case ctx.Err() != nil:
				case isBusy(err):
					busy.Add(1)
					select { // a real client would wait for Retry-After; this one tries again soon
					case <-ctx.Done():
					case <-time.After(10 * time.Millisecond):
					}
				default:
					wrong.Add(1)
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
	asking.Wait()
	fmt.Printf("%d clients for %v, 8 queries at once: %d right answers, %d times 429 with Retry-After, %d wrong or failed (bar: 0); peak memory: %s\n",
		clients, l.crowd, right.Load(), busy.Load(), wrong.Load(), l.memory())
	return nil
}

func isBusy(err error) bool {
	var s *status
	return errors.As(err, &s) && s.code == http.StatusTooManyRequests && s.header.Get("Retry-After") != ""
}

// check compares the counts of a service's rows with the expected ones.
func (l *lab) check(ctx context.Context, service string, counts map[string]string) error {
	doc, err := l.ask(ctx, "query", map[string]any{"sql": "SELECT count() AS n, uniq(TraceId) > 0 AS u FROM otel_logs WHERE ServiceName = {s:String}", "parameters": map[string]any{"s": service}})
	if err != nil {
		return err
	}
	var r struct{ Rows []struct{ N string } }
	if err := json.Unmarshal(doc, &r); err != nil || len(r.Rows) != 1 || r.Rows[0].N != counts[service] {
		return fmt.Errorf("%s has %s rows, got %s", service, counts[service], doc)
	}
	return nil
}

// readStat returns the fields of a process's stat that follow its name.
func readStat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest), err
}
