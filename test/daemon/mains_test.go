package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"sandbox/test/boxes"
)

// lines returns how often each line that the main command of a box has printed is in the
// log table, or nil while the log engine starts.
func (p *program) lines(box string) map[string]int {
	p.t.Helper()
	a := p.ask("POST", "/v1/observability/query", map[string]any{
		"sql": `SELECT Body, count() AS n FROM otel_logs WHERE ServiceName = {service:String} AND LogAttributes['main'] = 'true'
			AND LogAttributes['stream'] = 'stdout' AND EventName = '' GROUP BY Body`,
		"parameters": map[string]any{"service": "box-" + strings.TrimPrefix(box, "/v1/boxes/")},
	})
	if a.status == 503 {
		return nil
	}
	rows, _ := a.want(p.t, 200, "")["rows"].([]any)
	lines := map[string]int{}
	for _, one := range rows {
		row, _ := one.(map[string]any)
		var n int
		_, err := fmt.Sscan(fmt.Sprint(row["n"]), &n)
		check(p.t, err)
		lines[fmt.Sprint(row["Body"])] = n
	}
	return lines
}

// TestMainsKilled kills the server while a main command prints, at moments that differ, and
// wants each line in the log table once.
func TestMainsKilled(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]func(*testing.T) []string{
		"embedded": func(*testing.T) []string { return nil },
		"server":   func(t *testing.T) []string { return onServers(t, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, flags(t)...)
			const all = 6000
			script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo line $i; [ $((i %% 100)) = 0 ] && sleep 0.1; done; sleep 600", all)
			m := p.ask("POST", "/v1/boxes", map[string]any{"rootfs_path": p.rootfs, "network": "None", "command": []string{"sh", "-c", script}}).want(t, 201, "")
			box := fmt.Sprint("/v1/boxes/", m["id"])
			for rounds := range 4 {
				boxes.Await(t, "more lines", func() bool { return len(p.lines(box)) > 500+rounds*1000 })
				p.kill()
				p.start()
			}
			boxes.Await(t, "all lines", func() bool { return len(p.lines(box)) >= all })
			lines := p.lines(box)
			for i := 1; i <= all; i++ {
				if n := lines[fmt.Sprint("line ", i)]; n != 1 {
					t.Fatalf("line %d is there %d times", i, n)
				}
			}
			if len(lines) != all {
				t.Errorf("%d lines, want %d", len(lines), all)
			}
		})
	}
}
