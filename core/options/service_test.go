package options_test

import (
	"reflect"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// TestServiceRefused wants each document refused, with the member named.
func TestServiceRefused(t *testing.T) {
	t.Parallel()
	for doc, field := range map[string]string{
		`"command":[]`:           "command",
		`"command":[""]`:         "command",
		`"command":["a\u0000b"]`: "command[0]",
		`"command":["` + strings.Repeat("x", 131072) + `"]`: "command",
		`"command":"nginx"`:                    "command",
		`"command":7`:                          "command",
		`"command":[7]`:                        "command",
		`"command":["a",null]`:                 "command",
		`"restart":"always"`:                   "restart",
		`"stop_with_command":true`:             "stop_with_command",
		`"healthcheck":{"test":["CMD","a"]}`:   "healthcheck",
		`"command":"image","rootfs_path":"/x"`: "command",
	} {
		refusedService(t, doc, field)
	}
	for _, word := range []string{"", "sometimes", "on-failure:-1", "on-failure:0", "on-failure:", "on-failure:x", "on-failure:01", "on-failure:1000001", "always:3", "no:1", "Always"} {
		refusedService(t, `"command":["a"],"restart":"`+word+`"`, "restart")
	}
	for check, field := range map[string]string{
		`{"test":[]}`: "test", `{"test":["a"]}`: "test", `{"test":["CMD"]}`: "test", `{"test":["CMD",""]}`: "test", `{"test":["NONE","a"]}`: "test",
		`{"test":["CMD-SHELL","a","b"]}`: "test", `{"test":["CMD","a\u0000"]}`: "test[1]", `{"test":"true"}`: "test",
		`{"interval_ms":0}`: "interval_ms", `{"interval_ms":99}`: "interval_ms", `{"interval_ms":-1}`: "interval_ms", `{"interval_ms":3153600000000}`: "interval_ms",
		`{"timeout_ms":0}`: "timeout_ms", `{"timeout_ms":86400001}`: "timeout_ms", `{"start_period_ms":-1}`: "start_period_ms", `{"start_period_ms":86400001}`: "start_period_ms",
		`{"start_interval_ms":0}`: "start_interval_ms", `{"retries":0}`: "retries", `{"retries":-1}`: "retries", `{"retries":1001}`: "retries", `{"retry":1}`: "retry",
	} {
		refusedService(t, `"command":["a"],"healthcheck":`+check, "healthcheck."+field)
	}
	refusedService(t, `"command":["a"],"healthcheck":[]`, "healthcheck")
}

func refusedService(t *testing.T, members, field string) {
	t.Helper()
	_, err := options.DecodeCreate([]byte("{" + members + "}"))
	f := fault.Of(err)
	if err == nil || f.Kind != fault.Malformed && f.Kind != fault.InvalidArgument || len(f.Fields) == 0 || !strings.HasPrefix(f.Fields[0].Field, field) {
		t.Errorf("{%.80s}: %v, want one about %s", members, err, field)
	}
}

// TestService reads what there is to say of a main command.
func TestService(t *testing.T) {
	t.Parallel()
	b, err := options.DecodeCreate([]byte(`{"command":["a","b"],"restart":"on-failure:3","stop_with_command":true,"healthcheck":{"test":["CMD","c"],"interval_ms":100,"retries":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(b.Command, []string{"a", "b"}) || b.ImageCommand || b.Restart != "on-failure:3" || !b.StopWithCommand {
		t.Errorf("%+v", b)
	}
	if b, err = b.Serve(nil, &api.HealthCheck{Test: []string{"CMD", "d"}, TimeoutMS: 7000, IntervalMS: 5}); err != nil {
		t.Fatal(err)
	}
	want := api.HealthCheck{Test: []string{"CMD", "c"}, IntervalMS: 100, TimeoutMS: 7000, StartIntervalMS: 5000, Retries: 2}
	if !reflect.DeepEqual(*b.HealthCheck, want) {
		t.Errorf("%+v, want %+v", *b.HealthCheck, want)
	}
	for s, want := range map[string]struct {
		word api.Restart
		most int
	}{"": {"no", 0}, "no": {"no", 0}, "always": {"always", 0}, "on-failure": {"on-failure", 0}, "on-failure:7": {"on-failure", 7}} {
		if word, most, err := options.ParseRestart(s); err != nil || word != want.word || most != want.most {
			t.Errorf("%q: %s, %d, %v", s, word, most, err)
		}
	}
}

// TestServeByImage takes the command and the check of an image.
func TestServeByImage(t *testing.T) {
	t.Parallel()
	image := options.Box{Image: "x", ImageCommand: true}
	check := &api.HealthCheck{Test: []string{"CMD-SHELL", "c"}, IntervalMS: 1, Retries: -1, StartPeriodMS: 1 << 50}
	b, err := image.Serve([]string{"a", "b"}, check)
	want := &api.HealthCheck{Test: check.Test, IntervalMS: 100, TimeoutMS: 30000, StartPeriodMS: options.MaxHealthMS, StartIntervalMS: 5000, Retries: 3}
	if err != nil || !reflect.DeepEqual(b.Command, []string{"a", "b"}) || b.ImageCommand || !reflect.DeepEqual(b.HealthCheck, want) {
		t.Errorf("%+v, %+v, %v", b, b.HealthCheck, err)
	}
	if _, err := image.Serve(nil, nil); !fault.Is(err, fault.InvalidArgument) || fault.Of(err).Fields[0].Field != "command" {
		t.Errorf("an image without a command: %v", err)
	}
	none := image
	none.HealthCheck = &api.HealthCheck{Test: []string{"NONE"}}
	for range 2 { // a clone is made of what a create has made
		if none, err = none.Serve([]string{"a"}, check); err != nil || none.HealthCheck.Test[0] != "NONE" {
			t.Errorf("%+v, %v", none.HealthCheck, err)
		}
	}
	half := image
	half.HealthCheck = &api.HealthCheck{Retries: 2}
	if _, err := half.Serve([]string{"a"}, nil); !fault.Is(err, fault.InvalidArgument) || fault.Of(err).Fields[0].Field != "healthcheck.test" {
		t.Errorf("a check without a test: %v", err)
	}
	if b, err := image.Serve([]string{"a"}, &api.HealthCheck{Test: []string{"WHAT"}}); err != nil || b.HealthCheck != nil {
		t.Errorf("a check of an image that is none: %+v, %v", b.HealthCheck, err)
	}
	if b, err := (options.Box{Image: "x"}).Serve([]string{"a"}, check); err != nil || b.Command != nil || b.HealthCheck != nil {
		t.Errorf("a box without a command: %+v, %v", b, err)
	}
}
