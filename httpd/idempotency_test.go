package httpd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestIdempotencyWithoutReply takes the reply out of the record of a create, as
// if the server had been killed before it had one.
func TestIdempotencyWithoutReply(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := header("Idempotency-Key", "k")
	path := s.ask("POST", "/v1/boxes", `{}`, key).want(t, 201, "").header.Get("Location")
	again := func(status string) {
		t.Helper()
		takeReply(t, filepath.Join(filepath.Dir(s.socket), "creates"))
		s.ask("POST", "/v1/boxes", `{"name":"b"}`, key).want(t, 422, "idempotency_mismatch")
		a := s.ask("POST", "/v1/boxes", `{}`, key).want(t, 201, "")
		if a.header.Get("Location") != path || a.json["status"] != status {
			t.Errorf("got %s, want %s %s", a.text, status, path)
		}
	}
	again("running")
	s.ask("POST", path+":stop", "").want(t, 200, "")
	again("stopped")
	s.ask("DELETE", path, "").want(t, 200, "")
	again("running")
	if ids, _ := s.listed(""); len(ids) != 1 {
		t.Errorf("%d boxes", len(ids))
	}
}

// takeReply takes the reply out of the only record of a directory of creates.
func takeReply(t *testing.T, dir string) {
	t.Helper()
	records, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(records) != 1 {
		t.Fatalf("records %q", records)
	}
	doc, err := os.ReadFile(records[0])
	must(t, err)
	var record struct {
		Key, Body, At any
		Created       struct{ ID string }
	}
	must(t, json.Unmarshal(doc, &record))
	doc, err = json.Marshal(record)
	must(t, err)
	must(t, os.WriteFile(records[0], doc, 0o600))
}
