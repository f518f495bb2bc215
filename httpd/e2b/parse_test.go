package e2b

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
	"sandbox/httpd/cursor"
	"sandbox/httpd/e2b/protocol"
)

func unmarshal(doc string, v any) error { return json.Unmarshal([]byte(doc), v) }

func TestUnder(t *testing.T) {
	t.Parallel()
	user := account{"user", "/home/user"}
	for path, want := range map[string]string{
		"": "/home/user", "~": "/home/user", "~/a": "/home/user/a", "a/b": "/home/user/a/b", "/a": "/a", "../x": "/home/x", "~a": "/home/user/~a",
	} {
		if got := user.under(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]api.File{
		"-rw-r--r--": {Type: api.RegularFile, Mode: 0o644},
		"drwxrwxrwt": {Type: api.Directory, Mode: 0o1777},
		"-rwsr-Sr-T": {Type: api.RegularFile, Mode: 0o7744},
		"lrwxrwxrwx": {Type: api.Symlink, Mode: 0o777},
		"s---------": {Type: api.Socket},
	} {
		if got := permissions(f); got != want {
			t.Errorf("%v: got %s, want %s", f.Mode, got, want)
		}
	}
}

// TestSignature holds signatures to one that E2B's SDK has made.
func TestSignature(t *testing.T) {
	t.Parallel()
	query := url.Values{"path": {"a b/ü"}, "username": {"root"}, "signature_expiration": {"1700000000"}}
	if got, want := signature(query, "read", "token"), "v1_rmqZUV+vuqcS2+nUgRjFBp92A8JIbMlCr9l7FBzlyHs"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	now := time.Now()
	rec := func(id string, age time.Duration, status api.BoxStatus, labels map[string]string) core.Record {
		at := now.Add(-age)
		return core.Record{ID: id, CreatedAt: at, StartedAt: &at, Status: status, Options: options.Box{Image: "default", Labels: labels}}
	}
	all := []core.Record{
		rec("a", 3, api.Running, map[string]string{"k": "a&b=c"}), rec("b", 2, api.Paused, nil), rec("c", 1, api.Stopped, nil), rec("d", 1, api.Running, nil), rec("e", 1, api.Running, nil),
	}
	for query, want := range map[string]string{
		"": "deba", "order=asc": "abde", "state=paused": "b", "state=running,paused": "deba", "metadata=k%3Da%252526b%25253Dc": "a",
		"metadata=k%3Dother": "", "template=default": "deba", "template=else": "", "startedAfter=2999-01-01T00:00:00Z": "",
	} {
		values, _ := url.ParseQuery(query)
		for _, size := range []string{"1", "2", "100"} {
			if got := listed(t, all, values, size); got != want {
				t.Errorf("%s by %s: got %q, want %q", query, size, got, want)
			}
		}
	}
	for _, query := range []string{"limit=0", "limit=x", "startedAfter=now", "metadata=%25zz", "nextToken=!", "nextToken=YQ"} {
		values, _ := url.ParseQuery(query)
		if _, err := parseFilter(values); err == nil {
			t.Errorf("%s is taken", query)
		}
	}
}

// listed returns the ids of all pages.
func listed(t *testing.T, all []core.Record, query url.Values, size string) (found string) {
	t.Helper()
	query.Set("limit", size)
	query.Del("nextToken")
	for {
		f, err := parseFilter(query)
		if err != nil {
			t.Fatal(err)
		}
		page, next := f.page(all)
		for _, one := range page {
			found += one.SandboxID
		}
		if next == "" {
			return found
		}
		query.Set("nextToken", next)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("limit=2&order=asc&state=running&metadata=a%3Db&nextToken=" + cursor.Place{At: time.Now(), ID: "box_a"}.String())
	f.Fuzz(func(_ *testing.T, query string) {
		values, _ := url.ParseQuery(query)
		if filter, err := parseFilter(values); err == nil {
			filter.page([]core.Record{{ID: "box_a", Status: api.Running}})
		}
	})
}

func TestQuietTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": defaultQuiet, "50": 50 * time.Second, "0": defaultQuiet, "-1": defaultQuiet, "1e9": defaultQuiet, "99999": defaultQuiet} {
		if got := quietTime(http.Header{"Keepalive-Ping-Interval": {text}}); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestHostOf(t *testing.T) {
	t.Parallel()
	id := "box_abcdefghij234567abcd"
	for host, want := range map[string][2]string{
		"3000-" + id + ".localhost:8080": {"3000", id}, id + ".x": {}, "localhost:8080": {}, "3000-box_../x.y": {}, "": {},
	} {
		if port, got := hostOf(host); port != want[0] || got != want[1] {
			t.Errorf("%s: got %s %s", host, port, got)
		}
	}
}

// TestKeep wants a watcher that nobody asks to say that it lost events.
func TestKeep(t *testing.T) {
	t.Parallel()
	var w watcher
	for range maxEvents + 1 {
		w.keep(make([]*protocol.FilesystemEvent, 1), nil)
	}
	if _, err := w.take(); !errors.Is(err, errOverflow) {
		t.Errorf("got %v", err)
	}
	w.keep(make([]*protocol.FilesystemEvent, 2), nil)
	if events, err := w.take(); len(events) != 2 || err != nil {
		t.Errorf("got %d events, %v", len(events), err)
	}
}
