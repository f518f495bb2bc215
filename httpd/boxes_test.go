package httpd_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/options"
	"sandbox/httpd"
	"sandbox/test/members"
)

func TestLife(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.ask("POST", "/v1/boxes", `{"name":"web","env":{"A":"1"},"labels":{"k":"v"},"cpus":1}`).want(t, 201, "")
	id, _ := a.json["id"].(string)
	members.Equal(t, "a new box", members.Of{
		"status": {a.json["status"], "running"}, "auto_remove": {a.json["auto_remove"], false}, "image": {a.json["image"], "default"},
		"env": {a.json["env"], map[string]any{"A": "1"}}, "Location": {a.header.Get("Location"), "/v1/boxes/" + id},
	})
	for _, ref := range []string{id, "web", id[:9]} {
		if a := s.ask("GET", "/v1/boxes/"+ref, "").want(t, 200, ""); a.json["id"] != id {
			t.Errorf("%s: %s", ref, a.text)
		}
	}
	s.ask("POST", "/v1/boxes", `{"name":"web"}`).want(t, 409, "already_exists")
	s.ask("POST", "/v1/boxes/web:start", "").want(t, 409, "invalid_state")
	s.ask("DELETE", "/v1/boxes/web", "").want(t, 409, "invalid_state")
	s.ask("DELETE", "/v1/boxes/web?force=false", "").want(t, 409, "invalid_state")
	s.ask("DELETE", "/v1/boxes/web?force=yes", "").want(t, 422, "invalid_argument")
	if a := s.ask("POST", "/v1/boxes/web:stop", `{"timeout_seconds":0}`).want(t, 200, ""); a.json["status"] != "stopped" || a.json["stopped_at"] == nil {
		t.Errorf("stopped %s", a.text)
	}
	s.ask("POST", "/v1/boxes/web:stop", "").want(t, 409, "invalid_state")
	if a := s.ask("POST", "/v1/boxes/web%3Astart", "").want(t, 200, ""); a.json["status"] != "running" || a.json["stopped_at"] != nil {
		t.Errorf("started %s", a.text)
	}
	if a := s.ask("DELETE", "/v1/boxes/web?force=true", "").want(t, 200, ""); a.text != `{"ok":true,"id":"`+id+`"}` {
		t.Errorf("removed %s", a.text)
	}
	s.ask("GET", "/v1/boxes/web", "").want(t, 404, "box_not_found")
	s.ask("DELETE", "/v1/boxes/"+id+"?force=true", "").want(t, 404, "box_not_found")
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	path := "/v1/boxes/" + id
	for body, status := range map[string]int{`{"reclaim":1}`: 400, `{"reclaims":true}`: 400, `[]`: 400, `{`: 400} {
		if a := s.ask("POST", path+":pause", body); a.status != status {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
	s.ask("POST", path+":resume", "").want(t, 409, "invalid_state")
	if a := s.ask("POST", path+":pause", `{"reclaim":null}`).want(t, 200, ""); a.json["status"] != "paused" || a.json["paused_at"] == nil {
		t.Errorf("paused %s", a.text)
	}
	s.ask("POST", path+":pause", "").want(t, 409, "invalid_state")
	s.ask("POST", path+":start", "").want(t, 409, "invalid_state")
	s.ask("PUT", path+"/files?path=/f", "x").want(t, 409, "invalid_state")
	if a := s.ask("GET", "/v1/boxes?status=paused", "").want(t, 200, ""); len(a.json["boxes"].([]any)) != 1 {
		t.Errorf("listed %s", a.text)
	}
	if a := s.ask("GET", "/v1/boxes?status=running", "").want(t, 200, ""); len(a.json["boxes"].([]any)) != 0 {
		t.Errorf("listed as running: %s", a.text)
	}
	if a := s.ask("POST", path+":resume", "").want(t, 200, ""); a.json["status"] != "running" || a.json["paused_at"] != nil {
		t.Errorf("resumed %s", a.text)
	}
	s.ask("POST", "/v1/boxes/none:pause", "").want(t, 404, "box_not_found")
	s.ask("POST", "/v1/boxes/none:resume", "").want(t, 404, "box_not_found")
}

// TestAutoStart wants the routes that need a box to run to start or resume it, and
// others to leave it as it is.
func TestAutoStart(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{"auto_start":true}`)
	path := "/v1/boxes/" + id
	port := program(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	file := filepath.Join(t.TempDir(), "file")
	for _, verb := range []string{":stop", ":pause"} {
		for _, r := range []struct {
			method, path, body string
			status             int
			wakes              bool
		}{
			{"GET", path + "/metrics", "", 200, false},
			{"POST", path + "/exec", `{"cmd":["true"]}`, 201, true},
			{"PUT", path + "/files?path=" + file, "x", 200, true},
			{"GET", path + "/files:stat?path=/", "", 200, true},
			{"GET", fmt.Sprintf("%s/ports/%d/", path, port), "", http.StatusTeapot, true},
		} {
			s.ask("POST", path+verb, "").want(t, 200, "")
			down := s.ask("GET", path, "").json["status"]
			a := s.ask(r.method, r.path, r.body)
			now := s.ask("GET", path, "").json["status"]
			if a.status != r.status || (now == "running") != r.wakes || !r.wakes && now != down {
				t.Errorf("%s %s after %s: %d %s; the box is %s", r.method, r.path, verb, a.status, a.text, now)
			}
			if !r.wakes {
				s.ask("POST", path+map[string]string{":stop": ":start", ":pause": ":resume"}[verb], "").want(t, 200, "")
			}
		}
	}
	if a := s.ask("PATCH", path, `{"auto_start":null}`).want(t, 200, ""); a.json["auto_start"] != false {
		t.Errorf("it is %v", a.json["auto_start"])
	}
	s.ask("POST", path+":stop", "").want(t, 200, "")
	s.ask("GET", path+"/files:stat?path=/", "").want(t, 409, "invalid_state")
	s.ask("PATCH", path, `{"auto_start":1}`).want(t, 400, "malformed")
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{"ttl_seconds":3600,"on_expiry":"remove"}`)
	path := "/v1/boxes/" + id
	for body, status := range map[string]int{
		`{"ttl_seconds":0}`: 422, `{"ttl_seconds":-1}`: 422, `{"ttl_seconds":3153600000}`: 422, `{"on_expiry":""}`: 422, `{"on_expiry":"burn"}`: 422,
		`{"ttl_seconds":"1"}`: 400, `{"ttl_seconds":1.5}`: 400, `{"on_expiry":1}`: 400, `{"cpus":1}`: 400, `[]`: 400, `null`: 400,
	} {
		if a := s.ask("PATCH", path, body); a.status != status {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
		if strings.HasPrefix(body, `{"ttl`) && status == 422 || strings.Contains(body, `"burn"`) {
			s.ask("POST", "/v1/boxes", body).want(t, 422, "invalid_argument")
		}
	}
	a := s.ask("GET", path, "").want(t, 200, "")
	members.Equal(t, "a box with a time", members.Of{
		"ttl": {a.json["ttl_seconds"], 3600.}, "end": {a.json["on_expiry"], "remove"}, "a time": {a.json["expires_at"] != nil, true},
	})
	a = s.ask("PATCH", path, `{"ttl_seconds":null,"on_expiry":null}`).want(t, 200, "")
	members.Equal(t, "a box without", members.Of{
		"ttl": {a.json["ttl_seconds"], nil}, "end": {a.json["on_expiry"], "stop"}, "time": {a.json["expires_at"], nil},
	})
	s.ask("PATCH", "/v1/boxes/none", `{}`).want(t, 404, "box_not_found")
}

func TestAutoRemove(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{"auto_remove":true}`)
	if a := s.ask("POST", "/v1/boxes/"+id+":stop", "").want(t, 200, ""); a.json["status"] != "stopped" {
		t.Errorf("stopped %s", a.text)
	}
	s.ask("GET", "/v1/boxes/"+id, "").want(t, 404, "box_not_found")
}

func TestStopRefuses(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	for _, tt := range []struct {
		query, body string
		status      int
	}{
		{"?timeout_seconds=-1", "", 422}, {"?timeout_seconds=x", "", 422}, {"?timeout_seconds=99999999999999999999", "", 422},
		{"?timeout_seconds=", "", 422}, {"", `{"timeout_seconds":-1}`, 422}, {"", `{"timeout_seconds":"1"}`, 400},
		{"", `{"timeout":1}`, 400}, {"", `[]`, 400}, {"?%zz", "", 400}, {"", `{"timeout_seconds":1e400}`, 400},
	} {
		if a := s.ask("POST", "/v1/boxes/"+id+":stop"+tt.query, tt.body); a.status != tt.status {
			t.Errorf("%+v: %d %s", tt, a.status, a.text)
		}
	}
	if a := s.ask("GET", "/v1/boxes/"+id, ""); a.json["status"] != "running" {
		t.Errorf("got %s", a.text)
	}
}

// listed returns the ids of a listing, page by page.
func (s *service) listed(query string) (ids []string, pages int) {
	s.t.Helper()
	token := ""
	for {
		path := "/v1/boxes?" + query
		if token != "" {
			path += "&page_token=" + token
		}
		a := s.ask("GET", path, "").want(s.t, 200, "")
		boxes, _ := a.json["boxes"].([]any)
		for _, box := range boxes {
			id, _ := box.(map[string]any)["id"].(string)
			ids = append(ids, id)
		}
		pages++
		if token, _ = a.json["next_page_token"].(string); token == "" {
			return ids, pages
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	s := start(t)
	if a := s.ask("GET", "/v1/boxes", ""); a.text != `{"boxes":[],"next_page_token":null}` {
		t.Errorf("none: %s", a.text)
	}
	var all []string
	for i := range 7 {
		all = append([]string{s.create(fmt.Sprintf(`{"name":"n%d","env":{"S":"hidden"},"labels":{"n":"%d","all":"a=b"}}`, i, i%2))}, all...)
	}
	s.ask("POST", "/v1/boxes/n3:stop", "").want(t, 200, "")
	for query, want := range map[string]struct {
		ids   []string
		pages int
	}{
		"":                                  {all, 1},
		"page_size=3":                       {all, 3},
		"page_size=7":                       {all, 1},
		"page_size=1":                       {all, 7},
		"status=stopped":                    {all[3:4], 1},
		"status=running&page_size=4":        {slices.Concat(all[:3], all[4:]), 2},
		"name=n0":                           {all[6:], 1},
		"name=nosuch":                       {nil, 1},
		"label=n=1&page_size=2":             {[]string{all[1], all[3], all[5]}, 2},
		"label=n=1&label=all=a=b":           {[]string{all[1], all[3], all[5]}, 1},
		"label=n=":                          {nil, 1},
		"label=n=1&status=stopped":          {all[3:4], 1},
		"unknown=1&page_token=&page_size=9": {all, 1},
	} {
		ids, pages := s.listed(query)
		if !slices.Equal(ids, want.ids) || pages != want.pages {
			t.Errorf("%s: got %v in %d pages, want %v in %d", query, ids, pages, want.ids, want.pages)
		}
	}
	if a := s.ask("GET", "/v1/boxes", ""); strings.Contains(a.text, "hidden") || strings.Contains(a.text, `"env"`) {
		t.Errorf("an environment is in the list: %s", a.text)
	}
	for _, query := range []string{"status=", "status=failed", "status=Running", "page_size=0", "page_size=1001", "page_size=", "page_size=1e1", "page_token=x", "page_token=MS4", "page_token=!!", "label=x", "label==x", "label=n=1&label=n=0"} {
		s.ask("GET", "/v1/boxes?"+query, "").want(t, 422, "invalid_argument")
	}
}

// TestListIsFresh wants every change in the next listing, and pages to go on
// where the last box of a page was removed meanwhile.
func TestListIsFresh(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 20 {
		name := fmt.Sprintf("n%d", i)
		id := s.create(`{"name":"` + name + `"}`)
		for _, step := range []struct{ method, path, want string }{
			{"GET", "", `"running"`}, {"POST", ":stop", `"stopped"`}, {"POST", ":start", `"running"`},
		} {
			s.ask(step.method, "/v1/boxes/"+id+step.path, "").want(t, 200, "")
			list := s.ask("GET", "/v1/boxes?name="+name, "").text
			if one := s.ask("GET", "/v1/boxes/"+id, "").text; !strings.Contains(list, `"status":`+step.want) || !strings.Contains(one, `"status":`+step.want) {
				t.Errorf("after %s: %s, %s", step.path, list, one)
			}
		}
	}
	a := s.ask("GET", "/v1/boxes?page_size=5", "")
	boxes, _ := a.json["boxes"].([]any)
	last, _ := boxes[4].(map[string]any)["id"].(string)
	s.ask("DELETE", "/v1/boxes/"+last+"?force=true", "").want(t, 200, "")
	token, _ := a.json["next_page_token"].(string)
	if a := s.ask("GET", "/v1/boxes?page_token="+token, ""); strings.Count(a.text, `"id"`) != 15 || strings.Contains(a.text, last) {
		t.Errorf("the rest: %s", a.text)
	}
}

// TestAtOnce runs the same change from many clients: one wins.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	for _, tt := range []struct {
		method, path string
		others       []int
	}{
		{"POST", ":stop?timeout_seconds=0", []int{409}},
		{"POST", ":start", []int{409}},
		{"DELETE", "?force=true", []int{404}},
	} {
		var mu sync.Mutex
		count := map[int]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				a := s.ask(tt.method, "/v1/boxes/"+id+tt.path, "")
				mu.Lock()
				count[a.status]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if count[200] != 1 || count[200]+count[tt.others[0]] != 8 {
			t.Errorf("%s %s: %v", tt.method, tt.path, count)
		}
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := header("Idempotency-Key", "try-1")
	first := s.ask("POST", "/v1/boxes", `{"name":"a"}`, key).want(t, 201, "")
	again := s.ask("POST", "/v1/boxes", `{"name":"a"}`, key).want(t, 201, "")
	if again.text != first.text || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("got %s, want %s", again.text, first.text)
	}
	s.ask("POST", "/v1/boxes", `{"name":"b"}`, key).want(t, 422, "idempotency_mismatch")
	s.ask("POST", "/v1/boxes", `{"name": "a"}`, key).want(t, 422, "idempotency_mismatch") // other bytes
	s.ask("POST", "/v1/boxes", `{"name":"a"}`, header("Idempotency-Key", "try-2")).want(t, 409, "already_exists")
	s.ask("DELETE", "/v1/boxes/a?force=true", "").want(t, 200, "")
	s.ask("POST", "/v1/boxes", `{"name":"a"}`, header("Idempotency-Key", "try-2")).want(t, 201, "") // a failure is no reply
	for _, bad := range []string{"", "a b", strings.Repeat("a", 256), "ä"} {
		a := s.ask("POST", "/v1/boxes", `{}`, func(r *http.Request) { r.Header["Idempotency-Key"] = []string{bad} })
		if a.status != 422 && a.status != 400 { // net/http's own
			t.Errorf("%q: %d %s", bad, a.status, a.text)
		}
	}
	if ids, _ := s.listed(""); len(ids) != 1 {
		t.Errorf("%d boxes", len(ids))
	}
}

// TestIdempotencyAtOnce wants one box of many tries at once.
func TestIdempotencyAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	var wg sync.WaitGroup
	texts := make([]string, 16)
	for i := range texts {
		wg.Go(func() {
			texts[i] = s.ask("POST", "/v1/boxes", `{}`, header("Idempotency-Key", strings.Repeat("~", 255))).want(t, 201, "").text
		})
	}
	wg.Wait()
	if ids, _ := s.listed(""); len(ids) != 1 || len(slices.Compact(texts)) != 1 {
		t.Errorf("%d boxes, %q", len(ids), texts)
	}
}

// TestPublish checks which addresses a port may name, over TCP and over the Unix
// socket, and on which one a port is published that names none.
func TestPublish(t *testing.T) {
	t.Parallel()
	const denied = "permission_denied"
	for _, tt := range []struct {
		publish            string // the server's --publish, separated by blanks
		asked, first       string // host_ip, and what it becomes where that is not the same
		overTCP, overLocal string // the code of the failure
	}{
		{"", "", "127.0.0.1", "", ""},
		{"", "127.0.0.1", "", "", ""},
		{"", "127.0.0.9", "", "", ""},
		{"", "::1", "", "", ""},
		{"", "::ffff:127.0.0.1", "", "", ""},
		{"", "192.0.2.1", "", denied, ""},
		{"", "::ffff:192.0.2.1", "", denied, ""},
		{"", "0.0.0.0", "", denied, ""},
		{"", "::", "", denied, ""},
		{"", "here", "", "invalid_argument", "invalid_argument"},
		{"192.0.2.1 192.0.2.2", "", "192.0.2.1", "", ""},
		{"192.0.2.1 192.0.2.2", "192.0.2.2", "", "", ""},
		{"192.0.2.1 192.0.2.2", "::ffff:192.0.2.2", "", "", ""},
		{"192.0.2.1 192.0.2.2", "127.0.0.1", "", "", ""},
		{"192.0.2.1 192.0.2.2", "192.0.2.3", "", denied, ""},
		{"0.0.0.0", "192.0.2.3", "", "", ""},
		{"0.0.0.0", "2001:db8::1", "", denied, ""},
		{"::", "2001:db8::1", "", "", ""},
		{"::", "192.0.2.1", "", denied, ""},
	} {
		s := start(t, func(c *httpd.Config) {
			for _, address := range strings.Fields(tt.publish) {
				c.Publish = append(c.Publish, netip.MustParseAddr(address))
			}
		})
		body := fmt.Sprintf(`{"ports":[{"guest_port":80,"host_ip":%q}]}`, tt.asked)
		for _, reply := range []struct {
			answer
			code string
		}{{s.ask("POST", "/v1/boxes", body), tt.overTCP}, {s.local("POST", "/v1/boxes", body), tt.overLocal}} {
			says := map[string]string{"": fmt.Sprintf(`"host_ip":%q`, cmp.Or(tt.first, tt.asked)), denied: "--publish " + tt.asked, "invalid_argument": "ports[0].host_ip"}
			reply.want(t, map[string]int{"": 201, "invalid_argument": 422, denied: 403}[reply.code], reply.code)
			if !strings.Contains(reply.text, says[reply.code]) {
				t.Errorf("%+v: got %s, want %s", tt, reply.text, says[reply.code])
			}
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(`{"cpus":1,"memory_mib":100}`)
	id := s.create(`{"cpus":2,"memory_mib":200}`)
	s.ask("POST", "/v1/boxes/"+id+":stop", "").want(t, 200, "")
	a := s.ask("GET", "/v1/info", "").want(t, 200, "")
	if got := fmt.Sprint(a.json["usage"]); got != "map[boxes:2 cpus:1 memory_mib:100 running:1]" {
		t.Errorf("usage %s", got)
	}
	defaults, _ := a.json["defaults"].(map[string]any)
	if a.json["api_version"] != "v1" || defaults["cpus"] != float64(options.DefaultCPUs) || a.json["limits"] == nil || a.json["features"] == nil {
		t.Errorf("got %s", a.text)
	}
}

func TestCollect(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	running := s.create(`{}`)
	s.ask("POST", "/v1/boxes/"+id+":stop", "").want(t, 200, "")
	if a := s.ask("POST", "/v1/gc", `{"older_than_seconds":3600}`).want(t, 200, ""); a.text != `{"removed":0,"reclaimed_bytes":0,"boxes":[]}` {
		t.Errorf("got %s", a.text)
	}
	if a := s.ask("POST", "/v1/gc", "").want(t, 200, ""); a.json["removed"] != 1.0 || fmt.Sprint(a.json["boxes"]) != "["+id+"]" {
		t.Errorf("got %s", a.text)
	}
	s.ask("GET", "/v1/boxes/"+running, "").want(t, 200, "")
	s.ask("POST", "/v1/gc", `{"older_than_seconds":-1}`).want(t, 422, "invalid_argument")
	s.ask("POST", "/v1/gc", `{"older_than_seconds":1.5}`).want(t, 400, "malformed")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	a := s.ask("POST", "/v1/keys", `{"name":"ci","permissions":["Boxes"],"expires_at":"`+until+`"}`).want(t, 201, "")
	secret, _ := a.json["key"].(string)
	if a.json["secret"] != secret {
		t.Errorf("the member secret differs from key: %s", a.text)
	}
	id, _ := a.json["id"].(string)
	if masked, _ := a.json["masked"].(string); !strings.HasPrefix(masked, "sbx_live_*") || !strings.HasSuffix(masked, secret[len(secret)-3:]) || a.json["expires_at"] != until || a.json["environment"] != "default" {
		t.Errorf("got %s", a.text)
	}
	s.ask("GET", "/v1/boxes", "", bearer(secret)).want(t, 200, "")
	s.ask("GET", "/v1/keys", "", bearer(secret)).want(t, 403, "permission_denied")
	if list := s.ask("GET", "/v1/keys", "").want(t, 200, ""); strings.Contains(list.text, secret[9:50]) || strings.Contains(list.text, "hash") || !strings.Contains(list.text, id) {
		t.Errorf("got %s", list.text)
	}
	if a := s.ask("DELETE", "/v1/keys/"+id, "").want(t, 200, ""); a.text != `{"ok":true}` {
		t.Errorf("got %s", a.text)
	}
	s.ask("GET", "/v1/boxes", "", bearer(secret)).want(t, 401, "unauthenticated")
	s.ask("DELETE", "/v1/keys/"+id, "").want(t, 404, "key_not_found")
	if a := s.ask("POST", "/v1/keys", `{"name":"date","permissions":["Boxes"],"expires_at":"2099-02-01"}`).want(t, 201, ""); a.json["expires_at"] != "2099-02-01T00:00:00Z" {
		t.Errorf("a date: %s", a.text)
	}
	narrow := s.onlyKey("Keys")
	s.ask("POST", "/v1/keys", `{"name":"x","permissions":["Boxes"]}`, bearer(narrow)).want(t, 403, "permission_denied")
	s.ask("POST", "/v1/keys", `{"name":"x","permissions":["Keys"]}`, bearer(narrow)).want(t, 201, "")
	for body, status := range map[string]int{
		``: 400, `{}`: 400, `{"name":"x"}`: 400, `{"permissions":["Boxes"]}`: 400, `{"name":1,"permissions":["Boxes"]}`: 400,
		`{"name":"x","permissions":"Boxes"}`: 400, `{"name":"x","permissions":[null]}`: 400, `{"name":"x","permissions":["Boxes"],"key":"y"}`: 400,
		`{"name":"","permissions":["Boxes"]}`: 422, `{"name":"x","permissions":[]}`: 422, `{"name":"x","permissions":["all"]}`: 422,
		`{"name":"x","permissions":["Boxes"],"expires_at":"tomorrow"}`: 422, `{"name":"x","permissions":["Boxes"],"expires_at":"2020-01-01T00:00:00Z"}`: 422,
		`{"name":"x","permissions":["Boxes"],"environment":"../x"}`: 422,
	} {
		if a := s.ask("POST", "/v1/keys", body); a.status != status {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(`{}`)
	s.ask("GET", "/v1/nope", "").want(t, 404, "not_found")
	text := s.ask("GET", "/metrics", "").want(t, 200, "").text
	for _, line := range []string{
		`sandbox_http_requests_total{route="POST /v1/boxes",status="201"} 1`, `sandbox_http_requests_total{route="none",status="404"} 1`,
		"sandbox_boxes_running 1", "sandbox_boxes_created_total 1", `sandbox_boxes_expired_total{action="pause",reason="idle"} 0`, "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s in %s", line, text)
		}
	}
	s.local("GET", "/metrics", "").want(t, 200, "")

	contract, err := os.ReadFile("../docs/CONTRACT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, promised, _ := strings.Cut(string(contract), "\n- metrics are in Prometheus's")
	promised, _, _ = strings.Cut(promised, "\n\n")
	if got, want := figureNames(text, `# HELP (sandbox_\w+)`), figureNames(promised, "`(sandbox_\\w+)`"); !slices.Equal(got, want) {
		t.Errorf("there are\n%q, the contract names\n%q", got, want)
	}
}

// figureNames returns in order what the group of a pattern finds in a text.
func figureNames(text, pattern string) []string {
	var names []string
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return names
}

// TestCreateOfABriefBox wants the reply of a create that worked, although the
// box has gone before anybody could ask for it.
func TestCreateOfABriefBox(t *testing.T) {
	t.Parallel()
	images := fake.Images{"default": {Ref: "default", Layers: []string{t.TempDir()}}}
	s := start(t, func(c *httpd.Config) {
		c.Runtime = core.New(core.Config{Engine: fake.Brief{Engine: fake.NewEngine(t)}, Images: images})
	})
	made := s.ask("POST", "/v1/boxes", `{"name": "brief"}`).want(t, 201, "")
	id, _ := made.json["id"].(string)
	if made.json["name"] != "brief" || made.json["status"] != "running" || made.header.Get("Location") != "/v1/boxes/"+id {
		t.Errorf("created %s at %s", made.text, made.header.Get("Location"))
	}
	s.ask("GET", "/v1/boxes/"+id, "").want(t, 404, "box_not_found")
}
