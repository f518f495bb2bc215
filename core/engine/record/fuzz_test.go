package record_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
)

// FuzzCreate is the shim protocol as the shim reads it: what asks for a box keeps its
// meaning on the way to a record and back.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(`{"id":"box_a","image":{"layers":["/a"],"env":["A=b"]},"box":{"name":"b","cpus":2,"network":"None","volumes":[{"host_path":"/"}]}}`))
	f.Add([]byte(`{"owned":true,"box":{"env":{"":""},"ports":[{"host_port":-1}],"healthcheck":{"test":[]},"command":[""]}}`))
	f.Add([]byte(`{"box":null,"image":{"layers":null}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var m wire.Create
		if json.Unmarshal(doc, &m) != nil {
			return
		}
		asked := record.FromWire(m)
		if again := record.FromWire(record.ToWire(asked)); !reflect.DeepEqual(again, asked) {
			t.Errorf("%+v became %+v", asked, again)
		}
	})
}

// FuzzBox is a record as it may lie in a home: whatever it says, its methods end, and what
// is written of it is read as the same.
func FuzzBox(f *testing.F) {
	f.Add([]byte(`{"id":"box_a","state":"running","options":{"cpus":1,"ttl_seconds":5},"init":{"pid":7},"taken":["/a"],"returning":[]}`))
	f.Add([]byte(`{"state":"paused","pausing":true,"expires_at":"0001-01-01T00:00:00Z","options":{"ttl_seconds":9223372036854775807,"idle_seconds":-1}}`))
	f.Add([]byte(`{"state":"none","stopping":true,"etc":{"passwd":""},"spare":"../x"}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var b record.Box
		if json.Unmarshal(doc, &b) != nil {
			return
		}
		now := time.Now()
		b.Correct()
		_, _, _, _, _ = b.Slot(), b.Layers(), b.Due(now), b.Passes(), b.OverSince(now)
		for _, change := range []func(){b.Paused, b.PausedByTime, b.Resumed, b.PausedByIdleness, func() { b.InitEnded("fuzz") }} {
			change()
			_, _, _ = b.Timed(), b.Due(now), b.Summary()
		}
		first, err := json.Marshal(b)
		if err != nil {
			return // a time after the year 9999
		}
		var again record.Box
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatal(err)
		}
		if second, err := json.Marshal(again); err != nil || string(second) != string(first) {
			t.Errorf("%v: %s became %s", err, first, second)
		}
	})
}
