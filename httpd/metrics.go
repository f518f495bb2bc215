package httpd

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
)

// figures counts requests, and serves the page that Prometheus reads.
type figures struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	page     http.Handler
}

func newFigures(runtime *core.Runtime) *figures {
	m := &figures{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sandbox_http_requests_total", Help: "Requests by route and status.",
		}, []string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sandbox_http_request_duration_seconds", Help: "Time from the head of a request to the end of its reply, by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, []string{"route"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.duration, boxCollector{runtime},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// count counts a request; route is nil if it had none.
func (m *figures) count(route *Route, status int, took time.Duration) {
	name := "none"
	if route != nil {
		name = route.name
	}
	m.requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
	if route != nil && !route.Stream { // how long a stream lasts is up to its client
		m.duration.WithLabelValues(name).Observe(took.Seconds())
	}
}

func (s *Server) showMetrics(w http.ResponseWriter, r *request) error {
	s.figures.page.ServeHTTP(w, r.Request)
	return nil
}

// boxCollector reads the runtime's counters whenever Prometheus asks.
type boxCollector struct{ runtime *core.Runtime }

// runtimeMetric is one counter or gauge of a runtime.
type runtimeMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(api.RuntimeMetrics) int64
}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("sandbox_"+name, help, nil, nil)
}

func runtimeMetrics() []runtimeMetric {
	return []runtimeMetric{
		{describe("boxes_created_total", "Boxes that this daemon created."), prometheus.CounterValue, func(m api.RuntimeMetrics) int64 { return m.BoxesCreated }},
		{describe("boxes_failed_total", "Creates that failed."), prometheus.CounterValue, func(m api.RuntimeMetrics) int64 { return m.BoxesFailed }},
		{describe("boxes_running", "Boxes of the home that run."), prometheus.GaugeValue, func(m api.RuntimeMetrics) int64 { return m.Running }},
		{describe("execs_total", "Commands that this daemon started."), prometheus.CounterValue, func(m api.RuntimeMetrics) int64 { return m.Commands }},
		{describe("exec_errors_total", "Commands that could not be started."), prometheus.CounterValue, func(m api.RuntimeMetrics) int64 { return m.ExecErrors }},
	}
}

// expiredDesc describes the counter of boxes whose time has come, of which there is one
// for each reason and action.
func expiredDesc() *prometheus.Desc {
	return prometheus.NewDesc("sandbox_boxes_expired_total",
		"Boxes of the home that came to the end of their time (reason expired) or that nobody used (idle), by what became of them.",
		[]string{"reason", "action"}, nil)
}

// Describe implements [prometheus.Collector].
func (c boxCollector) Describe(all chan<- *prometheus.Desc) {
	all <- expiredDesc()
	for _, m := range runtimeMetrics() {
		all <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (c boxCollector) Collect(all chan<- prometheus.Metric) {
	now, err := c.runtime.Metrics(context.Background()) // Collect gets no context
	for _, m := range runtimeMetrics() {
		if err != nil {
			all <- prometheus.NewInvalidMetric(m.desc, err)
			continue
		}
		all <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.value(now)))
	}
	c.collectExpiries(all)
}

func (c boxCollector) collectExpiries(all chan<- prometheus.Metric) {
	n, err := c.runtime.Expiries(context.Background())
	if err != nil {
		all <- prometheus.NewInvalidMetric(expiredDesc(), err)
		return
	}
	for reason, ends := range map[string]core.Endings{"expired": n.Expired, "idle": n.Idle} {
		for action, count := range map[string]int64{options.ExpiryStop: ends.Stop, options.ExpiryPause: ends.Pause, options.ExpiryRemove: ends.Remove} {
			all <- prometheus.MustNewConstMetric(expiredDesc(), prometheus.CounterValue, float64(count), reason, action)
		}
	}
}
