package httpd_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"sandbox/httpd"
	"sandbox/metrics"
	"sandbox/test/boxes"
)

// historic starts a service whose boxes are measured each second.
func historic(t *testing.T) *service {
	t.Helper()
	var history *metrics.History
	s := start(t, func(c *httpd.Config) {
		history = metrics.Start(metrics.Config{Measure: c.Runtime.Measure, Interval: metrics.MinInterval, Log: slog.New(slog.DiscardHandler)})
		c.History = history
	})
	t.Cleanup(func() { history.Close(context.Background()) })
	return s
}

func TestSeries(t *testing.T) {
	t.Parallel()
	s := historic(t)
	id := s.create(`{"name": "web"}`)
	path := "/v1/boxes/" + id + "/metrics"
	var series map[string]any
	boxes.Await(t, "two points", func() bool {
		series = s.ask("GET", path+"?from=1h", "").want(t, 200, "").json
		points, _ := series["points"].([]any)
		return len(points) >= 2
	})
	point, _ := series["points"].([]any)[0].(map[string]any)
	for _, name := range []string{"at", "cpu_percent", "memory_bytes", "processes", "disk_bytes"} {
		if _, ok := point[name]; !ok {
			t.Errorf("a point has no %s: %v", name, point)
		}
	}
	if series["box_id"] != id || series["step_seconds"] != 3.0 { // an hour has no more than 1440 steps
		t.Errorf("got %v", series)
	}
	for query, step := range map[string]float64{"?step=5m": 300, "?to=0s&from=90m": 4, "?from=1d&step=1d": 86400, "?step=1d12h": 129600} {
		if got := s.ask("GET", "/v1/boxes/web/metrics"+query, "").want(t, 200, "").json; got["step_seconds"] != step || got["box_id"] != id {
			t.Errorf("%s: %v", query, got)
		}
	}
	now := s.ask("GET", path, "").want(t, 200, "").json
	if _, ok := now["commands_executed_total"]; !ok || now["points"] != nil {
		t.Errorf("without a query: %v", now)
	}
	s.ask("GET", path+"?other=1", "").want(t, 200, "")
}

func TestSeriesRefused(t *testing.T) {
	t.Parallel()
	s := historic(t)
	path := "/v1/boxes/" + s.create(`{}`) + "/metrics"
	for query, want := range map[string]struct {
		status int
		code   string
		fields string
	}{
		"?from=1h&to=2h":                 {422, "invalid_argument", "from"},
		"?from=0s":                       {422, "invalid_argument", "from"},
		"?from=2099-01-01T00:00:00Z":     {422, "invalid_argument", "from"},
		"?from=yesterday&to=never":       {422, "invalid_argument", "from to"},
		"?from=-1h":                      {422, "invalid_argument", "from"},
		"?from=":                         {422, "invalid_argument", "from"},
		"?step=0":                        {422, "invalid_argument", "step"},
		"?step=0s":                       {422, "invalid_argument", "step"},
		"?step=10":                       {422, "invalid_argument", "step"},
		"?step=1500ms":                   {422, "invalid_argument", "step"},
		"?from=1d&step=10s":              {422, "invalid_argument", "step"},
		"?from=1h&from=2h":               {422, "invalid_argument", "from"},
		"?from=1h&setp=10s":              {400, "malformed", "setp"},
		"?from=x&setp=10s":               {400, "malformed", "setp from"},
		"?from=%zz":                      {400, "malformed", ""},
		"?step=99999999999999999999999s": {422, "invalid_argument", "step"},
	} {
		a := s.ask("GET", path+query, "").want(t, want.status, want.code)
		e, _ := a.json["error"].(map[string]any)
		all, _ := e["fields"].([]any)
		var names []string
		for _, one := range all {
			field, _ := one.(map[string]any)
			name, _ := field["field"].(string)
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want.fields {
			t.Errorf("%s names %q, want %q: %s", query, got, want.fields, a.text)
		}
	}
	s.ask("GET", "/v1/boxes/nope/metrics?from=1h", "").want(t, 404, "box_not_found")
}

// A server that keeps nothing says so, and measures boxes all the same.
func TestNoSeries(t *testing.T) {
	t.Parallel()
	s := start(t)
	path := "/v1/boxes/" + s.create(`{}`) + "/metrics"
	s.ask("GET", path+"?from=1h", "").want(t, 503, "unavailable")
	s.ask("GET", path, "").want(t, 200, "")
}

// The samples of a box that was removed are not answered, those of one that has stopped
// are.
func TestSeriesOfEndedBoxes(t *testing.T) {
	t.Parallel()
	s := historic(t)
	path := "/v1/boxes/" + s.create(`{}`)
	points := func() int {
		all, _ := s.ask("GET", path+"/metrics?from=1h&step=3s", "").want(t, 200, "").json["points"].([]any)
		return len(all)
	}
	boxes.Await(t, "a point", func() bool { return points() > 0 })
	s.ask("POST", path+":stop", "").want(t, 200, "")
	if points() == 0 {
		t.Error("a stopped box has no points")
	}
	s.ask("DELETE", path, "").want(t, 200, "")
	s.ask("GET", path+"/metrics?from=1h", "").want(t, 404, "box_not_found")
}
