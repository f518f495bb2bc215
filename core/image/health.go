package image

import (
	"math"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sandbox/api"
)

// healthOf returns the health check that the config of an image names, or nil.
func healthOf(c *v1.HealthConfig) *api.HealthCheck {
	if c == nil || len(c.Test) == 0 {
		return nil
	}
	return &api.HealthCheck{
		Test: c.Test, IntervalMS: c.Interval.Milliseconds(), TimeoutMS: c.Timeout.Milliseconds(),
		StartPeriodMS: c.StartPeriod.Milliseconds(), Retries: c.Retries,
	}
}

// healthConfig returns a health check as the config of an image has it. The library
// that writes configs knows no start interval, so that is left out.
func healthConfig(h *api.HealthCheck) *v1.HealthConfig {
	if h == nil {
		return nil
	}
	return &v1.HealthConfig{
		Test: h.Test, Interval: milliseconds(h.IntervalMS), Timeout: milliseconds(h.TimeoutMS),
		StartPeriod: milliseconds(h.StartPeriodMS), Retries: h.Retries,
	}
}

// milliseconds returns a time that a record may name in any size.
func milliseconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}
