package core_test

import (
	"encoding/json"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	bare := core.Record{ID: "box_a", Status: api.Stopped, PID: 7, CreatedAt: at, UpdatedAt: at,
		Options: options.Box{RootfsPath: "/r", CPUs: 2, MemoryMiB: 512, Network: "Isolated", AutoRemove: true}}
	full := core.Record{ID: "box_b", Status: api.Failed, Reason: "init died", CreatedAt: at, UpdatedAt: at, StartedAt: &at,
		Error: &api.Failure{Code: fault.Engine, Message: "its init died"},
		Options: options.Box{Name: "n", Image: "i", CPUs: 1, MemoryMiB: 16, Network: "None", WorkingDir: "/w",
			Env: map[string]string{"A": "b"}, Labels: map[string]string{"k": "v"}}}
	running := core.Record{ID: "box_c", Status: api.Running, PID: 7, CreatedAt: at, UpdatedAt: at}
	paused := core.Record{ID: "box_d", Status: api.Paused, PID: 7, CreatedAt: at, UpdatedAt: at, PausedAt: &at, ExpiresAt: &at,
		Options: options.Box{TTLSeconds: 60, IdleSeconds: 5, OnExpiry: options.ExpiryRemove}}

	cases := []struct {
		name string
		info api.Box
		want string
	}{
		{"bare", bare.Info(), `{"id":"box_a","name":null,"status":"stopped","state":{"status":"stopped","running":false,"pid":null},"image":null,"rootfs_path":"/r","cpus":2,"memory_mib":512,"disk_size_gb":null,"network":"Isolated","working_dir":null,"env":{},"volumes":[],"ports":[],"auto_remove":true,"auto_start":false,"labels":{},"created_at":"2026-01-02T02:04:05Z","updated_at":"2026-01-02T02:04:05Z","started_at":null,"stopped_at":null,"paused_at":null,"ttl_seconds":null,"idle_seconds":null,"on_expiry":"stop","expires_at":null,"error":null}`},
		{"full, in a listing", full.Summary(), `{"id":"box_b","name":"n","status":"failed","state":{"status":"failed","running":false,"pid":null,"reason":"init died"},"image":"i","rootfs_path":null,"cpus":1,"memory_mib":16,"disk_size_gb":null,"network":"None","working_dir":"/w","volumes":[],"ports":[],"auto_remove":false,"auto_start":false,"labels":{"k":"v"},"created_at":"2026-01-02T02:04:05Z","updated_at":"2026-01-02T02:04:05Z","started_at":"2026-01-02T02:04:05Z","stopped_at":null,"paused_at":null,"ttl_seconds":null,"idle_seconds":null,"on_expiry":"stop","expires_at":null,"error":{"code":"engine_error","message":"its init died"}}`},
		{"running", running.Summary(), `{"id":"box_c","name":null,"status":"running","state":{"status":"running","running":true,"pid":7},"image":null,"rootfs_path":null,"cpus":0,"memory_mib":0,"disk_size_gb":null,"network":"","working_dir":null,"volumes":[],"ports":[],"auto_remove":false,"auto_start":false,"labels":{},"created_at":"2026-01-02T02:04:05Z","updated_at":"2026-01-02T02:04:05Z","started_at":null,"stopped_at":null,"paused_at":null,"ttl_seconds":null,"idle_seconds":null,"on_expiry":"stop","expires_at":null,"error":null}`},
		{"paused", paused.Summary(), `{"id":"box_d","name":null,"status":"paused","state":{"status":"paused","running":false,"pid":7},"image":null,"rootfs_path":null,"cpus":0,"memory_mib":0,"disk_size_gb":null,"network":"","working_dir":null,"volumes":[],"ports":[],"auto_remove":false,"auto_start":false,"labels":{},"created_at":"2026-01-02T02:04:05Z","updated_at":"2026-01-02T02:04:05Z","started_at":null,"stopped_at":null,"paused_at":"2026-01-02T02:04:05Z","ttl_seconds":60,"idle_seconds":5,"on_expiry":"remove","expires_at":"2026-01-02T02:04:05Z","error":null}`},
	}
	for _, c := range cases {
		got, err := json.Marshal(c.info)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
	if env := full.Info().Env; env["A"] != "b" {
		t.Errorf("env of one box is %v", env)
	}
}
