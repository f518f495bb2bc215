package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

const week = 7 * 24 * time.Hour

// needle is a text that only few rows contain.
const needle = "needle 7f3a9c"

// generate fills the table inside the engine, a million rows at a time and in
// the order of time, as real rows would arrive.
func (l *lab) generate(ctx context.Context) error {
	start := time.Now()
	l.end = start.UTC().Truncate(time.Second)
	from, step := l.end.Add(-week).UnixNano(), int64(week)/int64(l.rows)
	for done := 0; done < l.rows; done += 1_000_000 {
		n := min(1_000_000, l.rows-done)
		sql := fmt.Sprintf(`INSERT INTO otel.otel_logs (Timestamp, TraceId, SpanId, SeverityText, SeverityNumber, ServiceName, Body, ResourceAttributes, ScopeName, LogAttributes)
SELECT fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * %d), lower(hex(sipHash128(number))), lower(hex(sipHash64(number))),
	['DEBUG', 'INFO', 'INFO', 'INFO', 'WARN', 'ERROR'][number %% 6 + 1], [5, 9, 9, 9, 13, 17][number %% 6 + 1], concat('service-', toString(sipHash64(number) %% 20)),
	concat('request ', toString(number), ' of user ', toString(sipHash64(number, 1) %% 100000), ' for /api/v1/items/', toString(sipHash64(number, 2) %% 1000), ' took ', toString(sipHash64(number, 3) %% 2000), ' ms', if(number %% %d = 77, ' with the %s in it', '')),
	map('host.name', concat('host-', toString(number %% 50)), 'k8s.pod.name', concat('pod-', toString(number %% 200)), 'service.version', '1.2.3'), 'http',
	map('http.method', ['GET', 'POST'][number %% 2 + 1], 'http.status_code', ['200', '404', '500'][number %% 3 + 1], 'user.id', toString(sipHash64(number, 1) %% 100000))
FROM numbers(%d, %d)`, from, step, max(l.rows/7, 100), needle, done, n)
		if _, err := l.raw(ctx, sql); err != nil {
			return err
		}
	}
	size, err := l.raw(ctx, "SELECT formatReadableSize(sum(bytes_on_disk)), count() FROM system.parts WHERE active AND table = 'otel_logs'")
	if err != nil {
		return err
	}
	fmt.Printf("generated %d rows over 7 days in %.0f s; on disk, and parts: %s", l.rows, time.Since(start).Seconds(), size)
	return nil
}

// compare runs the same statement in turns on both ways and returns the median
// time of each.
func (l *lab) compare(ctx context.Context, sql string, rounds int) (gateway, engine time.Duration, size int, err error) {
	var ours, theirs []time.Duration
	for range rounds {
		start := time.Now()
		text, err := l.ask(ctx, "query", map[string]any{"sql": sql})
		if err != nil {
			return 0, 0, 0, err
		}
		ours = append(ours, time.Since(start))
		size = len(text)
		start = time.Now()
		if _, err := l.raw(ctx, sql+" FORMAT JSON"); err != nil {
			return 0, 0, 0, err
		}
		theirs = append(theirs, time.Since(start))
	}
	return median(ours), median(theirs), size, nil
}

func (l *lab) latency(ctx context.Context) error {
	for _, sql := range []string{"SELECT 1 AS one", fmt.Sprintf("SELECT count() AS n FROM otel.otel_logs WHERE ServiceName = 'service-3' AND Timestamp >= toDateTime64('%s', 9, 'UTC')", l.end.Add(-time.Minute).Format(time.DateTime))} {
		ours, theirs, _, err := l.compare(ctx, sql, 300)
		if err != nil {
			return err
		}
		fmt.Printf("p50 of 300, %.40s...: gateway %.2f ms, engine %.2f ms: %+.2f ms (bar: 1.5)\n", sql, ms(ours), ms(theirs), ms(ours-theirs))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (l *lab) throughput(ctx context.Context) error {
	ours, theirs, size, err := l.compare(ctx, "SELECT * FROM otel.otel_logs ORDER BY Timestamp LIMIT 10000", 20)
	if err != nil {
		return err
	}
	rate := func(d time.Duration) float64 { return float64(size) / 1e6 / d.Seconds() }
	fmt.Printf("10,000 rows, %.1f MB: gateway %.0f MB/s, engine %.0f MB/s: %.2f x (bar: 0.9)\n", float64(size)/1e6, rate(ours), rate(theirs), rate(ours)/rate(theirs))
	return nil
}

// searches measures searches for the newest rows of seven days.
func (l *lab) searches(ctx context.Context) error {
	for name, text := range map[string]string{"newest 100": "", "newest 100 with a rare text": needle, "newest 100 with a rare word": "7F3A9C"} {
		body := map[string]any{"from": l.end.Add(-week).Format(time.RFC3339), "to": l.end.Format(time.RFC3339)}
		if text != "" {
			body["text"] = text
		}
		start := time.Now()
		doc, err := l.ask(ctx, "logs/search", body)
		if err != nil {
			return err
		}
		took := time.Since(start)
		var r struct {
			Rows       []json.RawMessage
			Statistics struct{ ReadRows string }
		}
		if err := json.Unmarshal(doc, &r); err != nil {
			return err
		}
		read, err := strconv.ParseFloat(r.Statistics.ReadRows, 64)
		if err != nil {
			return err
		}
		fmt.Printf("%s of 7 days: %d rows in %.0f ms; read %.0f rows, %.2f %% (bar: 5)\n", name, len(r.Rows), ms(took), read, 100*read/float64(l.rows))
	}
	return nil
}

// cpu returns how much processor time a process of ours has used.
func cpu(p *exec.Cmd) time.Duration {
	var user, system int64
	text, err := readStat(p.Process.Pid)
	if err != nil || len(text) < 15 {
		return 0
	}
	user, _ = strconv.ParseInt(text[11], 10, 64)
	system, _ = strconv.ParseInt(text[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel's ticks
}
