package httpd_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/httpd"
)

// bodies are documents that no route takes.
func bodies() map[string]struct {
	body   string
	status int
} {
	type row = struct {
		body   string
		status int
	}
	return map[string]row{
		"cut off":         {`{"name":"x"`, 400},
		"two documents":   {`{}{}`, 400},
		"text behind":     {`{} x`, 400},
		"no JSON":         {`name=x`, 400},
		"a list":          {`[]`, 400},
		"a string":        {`"x"`, 400},
		"a number":        {`7`, 400},
		"NaN":             {`{"cpus":NaN}`, 400},
		"comments":        {`{/*x*/}`, 400},
		"trailing comma":  {`{"cpus":1,}`, 400},
		"single quotes":   {`{'cpus':1}`, 400},
		"a BOM":           {"\ufeff{}", 400},
		"NUL":             {"{}\x00", 400},
		"not UTF-8":       {"{\"name\":\"\xff\"}", 400},
		"lone surrogate":  {`{"name":"\ud800"}`, 400},
		"duplicate":       {`{"name":"x","name":"x"}`, 400},
		"duplicate deep":  {`{"labels":{"a":"1","a":"2"}}`, 400},
		"other case":      {`{"Name":"x"}`, 400},
		"unknown":         {`{"nme":"x"}`, 400},
		"unknown deep":    {`{"ports":[{"guest_port":1,"x":1}]}`, 400},
		"proto":           {`{"__proto__":{}}`, 400},
		"deep lists":      {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), 400},
		"deep objects":    {`{"name":` + strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat("}", 10_001), 400},
		"very deep":       {strings.Repeat("[", 500_000), 400},
		"huge number":     {`{"cpus":1e999}`, 400},
		"many digits":     {`{"cpus":` + strings.Repeat("9", 100_000) + `}`, 400},
		"int64 and one":   {`{"cpus":9223372036854775808}`, 400},
		"a fraction":      {`{"cpus":1.5}`, 400},
		"a string for it": {`{"cpus":"1"}`, 400},
		"true for it":     {`{"cpus":true}`, 400},
		"number for name": {`{"name":1}`, 400},
		"list for name":   {`{"name":["x"]}`, 400},
		"too large":       {`{"name":"` + strings.Repeat("a", 1<<20) + `"}`, 413},
	}
}

func TestBadBodies(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{}`)
	before := s.state()
	for _, path := range []string{"/v1/boxes", "/v1/keys", "/v1/gc", "/v1/boxes/" + id + ":stop"} {
		for name, tt := range bodies() {
			code := "malformed"
			if tt.status == 413 {
				code = "too_large"
			}
			t.Run(path+" "+name, func(t *testing.T) { s.ask("POST", path, tt.body).want(t, tt.status, code) })
			chunked := func(r *http.Request) { r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(tt.body)) }
			t.Run(path+" chunked "+name, func(t *testing.T) { s.ask("POST", path, tt.body, chunked).want(t, tt.status, code) })
		}
	}
	if after := s.state(); after != before {
		t.Errorf("refused requests changed the state: %s", after)
	}
}

func TestBadValues(t *testing.T) {
	t.Parallel()
	s := start(t)
	for body, field := range map[string]string{
		`{"name":"` + strings.Repeat("a", 10_000) + `"}`: "name", `{"name":".."}`: "name", `{"name":"a/b"}`: "name", `{"name":"a%2fb"}`: "name",
		`{"name":"a\u0000"}`: "name", `{"name":"鍵"}`: "name", `{"name":"a:stop"}`: "name", `{"name":"box_a"}`: "name", `{"name":""}`: "name",
		`{"name":"а"}`: "name", `{"name":"a "}`: "name", `{"name":"-a"}`: "name",
		`{"cpus":0}`: "cpus", `{"cpus":-1}`: "cpus", `{"memory_mib":15}`: "memory_mib", `{"disk_size_gb":0}`: "disk_size_gb", `{"disk_size_gb":65537}`: "disk_size_gb",
		`{"network":"Host"}`: "network", `{"working_dir":"a"}`: "working_dir", `{"working_dir":"/../a"}`: "working_dir", `{"env":{"A=B":"1"}}`: "env",
		`{"env":{"A":"\u0000"}}`: "env.A", `{"ports":[{"guest_port":0}]}`: "ports[0].guest_port", `{"ports":[{"guest_port":1,"protocol":"Sctp"}]}`: "ports[0].protocol",
		`{"volumes":[{"host_path":"/","guest_path":"/a"}]}`: "volumes[0].host_path", `{"volumes":[{"host_path":"/a/../..","guest_path":"/a"}]}`: "volumes[0].host_path",
		`{"volumes":[{"host_path":"a","guest_path":"/proc"}]}`: "volumes[0].host_path", `{"image":"x","rootfs_path":"/y"}`: "image", `{"rootfs_path":"//"}`: "rootfs_path",
	} {
		a := s.ask("POST", "/v1/boxes", body).want(t, 422, "invalid_argument")
		e, _ := a.json["error"].(map[string]any)
		if fields, _ := e["fields"].([]any); len(fields) == 0 || fields[0].(map[string]any)["field"] != field {
			t.Errorf("%.60s: %s, want the field %s", body, a.text, field)
		}
	}
	s.ask("POST", "/v1/boxes", `{"cpus":1000000}`).want(t, 422, "invalid_argument")
	s.ask("POST", "/v1/boxes", `{"image":"nosuch"}`).want(t, 422, "image_error")
	if ids, _ := s.listed(""); len(ids) != 0 {
		t.Errorf("%d boxes", len(ids))
	}
}

// TestBadNames asks for boxes by names that can't be; %2f is part of a name
// and not of the path.
func TestBadNames(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(`{"name":"web"}`)
	for _, escaped := range map[string]string{
		"long":          strings.Repeat("a", 10_000),
		"dots":          "..",
		"escaped dots":  "%2e%2e",
		"a slash":       "web%2fexec",
		"to another":    "%2fv1%2fkeys",
		"NUL":           "web%00",
		"another's A":   url.PathEscape("wеb"),
		"kanji":         url.PathEscape("鍵"),
		"right to left": url.PathEscape("\u202ebew"),
		"not UTF-8":     "%ff%fe",
		"a space":       "web%20",
		"plus":          "web+",
		"a query":       "web%3fforce=true",
		"a prefix":      "we",
		"case":          "WEB",
	} {
		s.ask("GET", "/v1/boxes/"+escaped, "").want(t, 404, "box_not_found")
		s.ask("DELETE", "/v1/boxes/"+escaped+"?force=true", "").want(t, 404, "box_not_found")
		s.ask("POST", "/v1/boxes/"+escaped+":stop", "").want(t, 404, "box_not_found")
	}
	for _, verb := range []string{":", ":stop:", ":stop:start", "%3a%2e", ":STOP", ":stop%00"} {
		if a := s.ask("POST", "/v1/boxes/web"+verb, ""); a.status != 404 && a.status != 405 {
			t.Errorf("%q: %d %s", verb, a.status, a.text)
		}
	}
	if a := s.ask("GET", "/v1/boxes/web", "").want(t, 200, ""); a.json["status"] != "running" {
		t.Errorf("got %s", a.text)
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	s := start(t)
	for kind, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true, "application/vnd.box+json": true, "": true,
		"text/plain": false, "application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false, "application/xml": false, "json": false, "\"": false,
	} {
		a := s.ask("POST", "/v1/boxes", `{}`, func(r *http.Request) {
			if r.Header.Del("Content-Type"); kind != "" {
				r.Header.Set("Content-Type", kind)
			}
		})
		if ok {
			a.want(t, 201, "")
		} else {
			a.want(t, 400, "malformed")
		}
	}
}

// TestHostPaths looks at paths over TCP; the socket's users may name any but
// those that are closed to all.
func TestHostPaths(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret"), "x")
	must(t, os.MkdirAll(filepath.Join(root, "in", "deep"), 0o700))
	write(t, filepath.Join(root, "file"), "x")
	for link, target := range map[string]string{
		"absolute": outside, "relative": strings.Repeat("../", 20) + outside, "toSecret": outside + "/secret", "inside": "in",
		"magic": "/proc/self/root", "up": "..", "loop": "loop", "twice": "absolute", "through": "in/../../" + filepath.Base(outside),
	} {
		must(t, os.Symlink(target, filepath.Join(root, link)))
	}
	s := start(t, func(c *httpd.Config) { c.HostRoots = []string{root} })
	none := start(t)
	for path, want := range map[string]string{
		root: "", root + "/in": "", root + "/in/deep": "", root + "/inside": "", root + "/inside/deep": "", root + "//in/./deep": "",
		root + "/nosuch": "invalid_argument", root + "/in/nosuch": "invalid_argument", root + "/in/../in": "invalid_argument", "/": "invalid_argument",
		outside: "permission_denied", "/etc": "permission_denied", "/proc/self/root": "permission_denied", filepath.Dir(root): "permission_denied", root + "x": "permission_denied",
		root + "/absolute": "permission_denied", root + "/relative": "permission_denied", root + "/toSecret": "permission_denied", root + "/magic": "permission_denied",
		root + "/magic/etc": "permission_denied", root + "/loop": "permission_denied", root + "/twice": "permission_denied", root + "/through": "permission_denied",
		root + "/absolute/secret": "permission_denied",
	} {
		for _, body := range []string{fmt.Sprintf(`{"rootfs_path":%q}`, path), fmt.Sprintf(`{"volumes":[{"host_path":%q,"guest_path":"/v"}]}`, path)} {
			status := map[string]int{"": 201, "invalid_argument": 422, "permission_denied": 403}[want]
			a := s.ask("POST", "/v1/boxes", body).want(t, status, want)
			if strings.Contains(a.text, "within") {
				t.Errorf("the reply shows the server's internals: %s", a.text)
			}
			if want != "invalid_argument" {
				none.ask("POST", "/v1/boxes", body).want(t, 403, "permission_denied")
			}
		}
	}
	s.local("POST", "/v1/boxes", fmt.Sprintf(`{"rootfs_path":%q}`, outside)).want(t, 201, "")
	for _, path := range []string{s.socket, filepath.Dir(s.socket)} {
		s.local("POST", "/v1/boxes", fmt.Sprintf(`{"volumes":[{"host_path":%q,"guest_path":"/v"}]}`, path)).want(t, 422, "invalid_argument")
	}
	s.local("POST", "/v1/boxes", `{"rootfs_path":"/"}`).want(t, 422, "invalid_argument")
}

// TestHostPathsElsewhere has boxes on other hosts: their engine looks at their paths, and not
// the server, which may have others of these names.
func TestHostPathsElsewhere(t *testing.T) {
	t.Parallel()
	for _, roots := range [][]string{nil, {"/no/such"}} {
		s := start(t, func(c *httpd.Config) {
			c.Runtime = core.New(core.Config{Engine: fake.NewEngine(t), Images: fake.Images{"default": {Ref: "default"}}, Elsewhere: true})
			c.HostRoots = roots
		})
		for _, path := range []string{"/no/such/path", "/dev/null", s.socket} {
			s.ask("POST", "/v1/boxes", fmt.Sprintf(`{"volumes":[{"host_path":%q,"guest_path":"/v"}]}`, path)).want(t, 201, "")
		}
		s.ask("POST", "/v1/boxes", `{"volumes":[{"claim":"data","guest_path":"/v"}]}`).want(t, 201, "")
		if told := strings.Contains(s.local("GET", "/v1/info", "").text, `"host_paths":true`); told != (roots != nil) {
			t.Errorf("with the roots %q: host_paths is %v", roots, told)
		}
	}
	here := start(t)
	here.ask("POST", "/v1/boxes", `{"volumes":[{"claim":"data","guest_path":"/v"}]}`).want(t, 501, "unsupported")
}

func TestLargeHeader(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ask("GET", "/v1/me", "", header("X-Filler", strings.Repeat("a", 48<<10))).want(t, 200, "")
	if a := s.ask("GET", "/v1/me", "", header("X-Filler", strings.Repeat("a", 66<<10))); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", a.status)
	}
	for size, want := range map[int]string{64 << 10: "HTTP/1.1 200", 64<<10 + 1: "HTTP/1.1 431"} {
		head := "GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\nX-Filler: "
		head += strings.Repeat("a", size-len(head)-4) + "\r\n\r\n"
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		must(t, err)
		_, err = io.WriteString(conn, head)
		must(t, err)
		line := make([]byte, len(want))
		if _, err := io.ReadFull(conn, line); err != nil || string(line) != want {
			t.Errorf("a head of %d bytes: %q, %v", size, line, err)
		}
		must(t, conn.Close())
	}
	if a := s.ask("GET", "/v1/boxes?name="+strings.Repeat("a", 70<<10), ""); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", a.status)
	}
}

// TestSlowClients sends a part and then nothing, and wants the server to end it.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Timeout = time.Second })
	auth := "Authorization: Bearer " + s.key + "\r\n"
	for name, tt := range map[string]struct {
		sent, want string // want is how the answer begins; "" for none, or one of net/http
	}{
		"nothing":                  {"", ""},
		"half a line":              {"GET /v1/m", ""},
		"half a head":              {"GET /v1/me HTTP/1.1\r\nHost: x\r\nX-A", ""},
		"half a body":              {"POST /v1/boxes HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 100\r\n\r\n{\"na", "HTTP/1.1 504"},
		"half a chunk":             {"POST /v1/boxes HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"na", "HTTP/1.1 504"},
		"an unread body":           {"POST /v1/boxes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", "HTTP/1.1 401"},
		"a body of a GET":          {"GET /v1/me HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 100\r\n\r\n{", "HTTP/1.1 200"},
		"a body that goes nowhere": {"POST /nope HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 100\r\n\r\n{", "HTTP/1.1 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			must(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, tt.sent)
			must(t, err)
			answer, err := io.ReadAll(conn) // to the end of the connection
			check(t, err)
			if !strings.HasPrefix(string(answer), tt.want) || tt.want == "" && len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
				t.Errorf("got %q, want %q", answer, tt.want)
			}
		})
	}
}

// TestSlowReader takes no reply: the server gives it up, and serves others.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Timeout = time.Second })
	for i := range 100 {
		s.create(fmt.Sprintf(`{"name":"n%d","labels":{"l":%q}}`, i, strings.Repeat("x", 20_000)))
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(t, err)
	defer conn.Close()
	must(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	list := "GET /v1/boxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\n\r\n"
	_, err = io.WriteString(conn, strings.Repeat(list, 10))
	must(t, err)
	s.ask("GET", "/v1/me", "").want(t, 200, "")
	for strings.Count(s.log.String(), `"path":"/v1/boxes","status":200`) == 0 { // the write has failed
		time.Sleep(10 * time.Millisecond)
	}
	if log := s.log.String(); strings.Count(log, `"path":"/v1/boxes","status":200`) == 10 {
		t.Errorf("ten whole replies to a client that did not read: %s", log)
	}
}

// TestKeepAlive wants a deadline of one request to be none of the next's.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Timeout = time.Second })
	for range 3 {
		s.create(`{}`)
		time.Sleep(1100 * time.Millisecond) // longer than a client may take
	}
	s.ask("GET", "/v1/boxes", "").want(t, 200, "")
}

// TestBadLastEvent wants both numbers of a last event to be looked at, though one counts.
func TestBadLastEvent(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := "/v1/boxes/" + s.create(`{}`)
	id, _ := s.ask("POST", box+"/exec", `{"cmd":["true"]}`).json["id"].(string)
	for _, after := range []string{"x", "-1", "2562553542601447309312"} {
		if a := s.ask("GET", box+"/exec/"+id+"/events?after="+after, "", header("Last-Event-ID", "1")); a.status != 422 {
			t.Errorf("%s: %d %s", after, a.status, a.text)
		}
	}
}

// TestTwice gives members of query strings twice, which only labels may be.
func TestTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	box := "/v1/boxes/" + s.create(`{"labels":{"a":"b","c":"d"}}`)
	for _, path := range []string{
		box + "/files:stat?path=/etc&path=/", "/v1/boxes?page_size=1&page_size=1", box + "/exec/none/events?after=&after=1",
	} {
		if a := s.ask("GET", path, ""); a.status != 422 || !strings.Contains(a.text, "must be given once") {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	s.ask("GET", "/v1/boxes?label=a=b&label=c=d", "").want(t, 200, "")
}
