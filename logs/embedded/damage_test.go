package embedded_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	chdriver "github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/test/full"
)

// damages are what can happen to a file of a part, each with the code that the engine
// has for it. The data begin with 16 bytes of a checksum, a byte for the codec and 4
// bytes of a size.
var damages = map[string]struct {
	code int32
	file string
	do   func(file string) error
}{
	"a size that can't be":    {39, "data.bin", overwrite(17, 0xff, 0xff, 0xff, 0xff)},
	"bytes that have changed": {40, "data.bin", overwrite(0, 0, 0, 0, 0)},
	"a codec that can't be":   {432, "data.bin", overwrite(16, 0)},
	"data that end early":     {33, "data.bin", cut(40)},
	"no data":                 {33, "data.bin", cut(0)},
	"no file of data":         {107, "data.bin", os.Remove},
	"no marks":                {246, "data.cmrk*", cut(0)},
	"an empty index":          {32, "skp_idx_idx_trace_id.idx", cut(0)},
}

func cut(size int64) func(string) error {
	return func(file string) error { return os.Truncate(file, size) }
}

func overwrite(at int, with ...byte) func(string) error {
	return func(file string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		copy(data[at:], with)
		return os.WriteFile(file, data, 0o600)
	}
}

// fileOf returns the path of a file of the part that one insert made. Inserts are
// counted from 1.
func fileOf(t *testing.T, dir string, insert int, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "data/store/*/*", fmt.Sprintf("*_%d_%[1]d_0", insert), name))
	if err != nil || len(found) != 1 {
		t.Fatalf("the files %s of insert %d are %v, %v", name, insert, found, err)
	}
	return found[0]
}

// control runs a statement that a query may not be, and returns what the engine answers.
func control(t *testing.T, e *embedded.Engine, sql string) string {
	t.Helper()
	resp, err := web(t, e).Post("http://engine/", "text/plain", strings.NewReader(sql))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestDamage damages a file in each of these ways. OnDamage's function is called for each,
// and no client is told that its statement is wrong, or where the files are.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, _ := engine(t, dir)
	if answer := control(t, e, "SYSTEM STOP MERGES"); answer != "" { // each insert stays a part of its own
		t.Fatal(answer)
	}
	c := driver(t, e)
	var told atomic.Int32
	c.OnDamage(func() { told.Add(1) })
	n := 0
	for name, d := range damages {
		n++
		if err := insert(t.Context(), c, n, 10); err != nil {
			t.Fatal(err)
		}
		file := fileOf(t, dir, n, d.file)
		if err := d.do(file); err != nil {
			t.Fatal(err)
		}
		_, err := c.Query(t.Context(), clickhouse.Request{
			SQL:    "SELECT * FROM otel.otel_logs WHERE _part = {part:String} AND TraceId = {trace:String}",
			Params: map[string]string{"part": filepath.Base(filepath.Dir(file)), "trace": strconv.Itoa(n)}})
		var ex *chdriver.Exception
		if !fault.Is(err, fault.Upstream) || !errors.As(err, &ex) || ex.Code != d.code || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v (the engine: %v), want upstream_error and code %d", name, err, ex, d.code)
		}
		if told.Load() != int32(n) {
			t.Errorf("%s: told %d times, want %d", name, told.Load(), n)
		}
	}
}

// TestTooEarly has values of statements end too early, for which the engine has the same
// codes as for files. They name themselves as a damaged file does, and are told to be
// wrong all the same.
func TestTooEarly(t *testing.T) {
	t.Parallel()
	e, _ := engine(t, t.TempDir())
	c := driver(t, e)
	c.OnDamage(func() { t.Error("a file is damaged") })
	if err := insert(t.Context(), c, 1, 1); err != nil {
		t.Fatal(err)
	}
	for code, sql := range map[int32]string{
		32: "SELECT toUInt8(materialize('')) AS `Attempt to read after eof: While executing MergeTreeSelect(` FROM otel.otel_logs",
		33: "SELECT bitmapToArray(CAST(unhex('0105') AS AggregateFunction(groupBitmap, UInt8))) AS `Cannot read all data in MergeTreeReader`",
	} {
		_, err := c.Query(t.Context(), clickhouse.Request{SQL: sql})
		var ex *chdriver.Exception
		if !fault.Is(err, fault.SQLError) || !errors.As(err, &ex) || ex.Code != code {
			t.Errorf("%s: %v (the engine: %v), want sql_error and code %d", sql, err, ex, code)
		}
	}
}

// TestMend damages a file of one batch under the running engine. Queries fail, the
// engine is started again, and the other batch is there.
func TestMend(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"no marks", "data that end early"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mend(t, damages[name].file, damages[name].do)
		})
	}
}

func mend(t *testing.T, file string, do func(string) error) {
	dir := t.TempDir()
	e, _ := engine(t, dir)
	c := driver(t, e)
	c.OnDamage(e.Mend)
	for batch := range 2 {
		if err := insert(t.Context(), c, batch, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := do(fileOf(t, dir, 1, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := batches(t.Context(), c); !fault.Is(err, fault.Upstream) {
		t.Fatalf("with a damaged file: %v, want upstream_error", err)
	}
	left, err := batches(t.Context(), c)
	for err != nil && t.Context().Err() == nil { // down, or not down yet
		wait(t, e)
		left, err = batches(t.Context(), c)
	}
	if !maps.Equal(left, map[int]int{1: 10}) {
		t.Errorf("left are %v, want the second batch", left)
	}
}

// TestFullDisk fills the disk while a merge is written. The merge fails, and what it
// was made of stays. It needs root to mount a disk of its own.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	e, _ := engine(t, filepath.Join(disk, "logs"))
	c := driver(t, e)
	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = filler.Close() })
	all := map[int]int{}
	for failed := false; !failed; { // a merge can end before the disk is full
		for range 2 {
			batch := len(all)
			if err := insert(t.Context(), c, batch, 20_000); err != nil {
				t.Fatal(err)
			}
			all[batch] = 20_000
		}
		answer := mergeOnFullDisk(t, e, filler)
		if failed = answer != ""; strings.Contains(answer, "NOT_ENOUGH_SPACE") {
			t.Fatalf("the merge wrote nothing: %s", answer)
		}
		if left, err := batches(t.Context(), c); err != nil || !maps.Equal(left, all) {
			t.Fatalf("left are %v, %v", left, err)
		}
		if answer := control(t, e, "CHECK TABLE otel.otel_logs SETTINGS check_query_single_value_result = 1"); answer != "1\n" {
			t.Fatalf("the engine finds damage: %s", answer)
		}
	}
}

// mergeOnFullDisk merges all parts of the log table, fills the disk with filler meanwhile,
// and returns what the engine answers: nothing if it has merged them.
func mergeOnFullDisk(t *testing.T, e *embedded.Engine, filler *os.File) string {
	t.Helper()
	merged := make(chan string, 1)
	go func() { merged <- control(t, e, "OPTIMIZE TABLE otel.otel_logs FINAL") }()
	for running := "0\n"; running == "0\n" && len(merged) == 0; {
		running = control(t, e, "SELECT count() FROM system.merges")
	}
	err := full.Take(filler)
	answer := <-merged
	if err := errors.Join(err, filler.Truncate(0)); err != nil {
		t.Fatal(err)
	}
	return answer
}
