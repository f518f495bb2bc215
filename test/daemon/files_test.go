package daemon_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"

	"sandbox/core/options"
)

const boundary = "the-boundary"

// part is one field of a form; a file where it has a name.
func part(field, name, content string) string {
	disposition := `form-data; name="` + field + `"`
	if name != "" {
		disposition += `; filename="` + name + `"`
	}
	return "--" + boundary + "\r\nContent-Disposition: " + disposition + "\r\n\r\n" + content + "\r\n"
}

const formEnd = "--" + boundary + "--\r\n"

func (p *program) upload(box string, body io.Reader) answer {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), "POST", "http://box"+box+"/files/upload", body)
	must(p.t, err)
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	return p.send(req)
}

func (p *program) download(box, path string) answer {
	p.t.Helper()
	return p.ask("POST", box+"/files/download", map[string]any{"path": path})
}

func TestFiles(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	content := strings.Repeat("content\x00\xff\r\n", 100_000)
	for _, c := range []struct{ name, form, path string }{
		{"dest first", part("dest", "", "/made/for/it/a") + part("file", "x", content), "/made/for/it/a"},
		{"file first", part("file", "x", content) + part("dest", "", "/b"), "/b"},
		{"into a directory", part("dest", "", "/tmp") + part("file", "c", content), "/tmp/c"},
		{"into a new directory", part("dest", "", "/new/") + part("file", "../../d", content), "/new/d"},
		{"with a mode", part("mode", "", "750") + part("dest", "", "/e") + part("file", "x", content), "/e"},
		{"the mode last", part("dest", "", "/f") + part("file", "x", content) + part("mode", "", "751"), "/f"},
	} {
		m := p.upload(box, strings.NewReader(c.form+formEnd)).want(t, 200, "")
		if m["dest"] != c.path || m["size"] != float64(len(content)) || m["ok"] != true {
			t.Errorf("%s: %v", c.name, m)
		}
		a := p.download(box, c.path)
		a.want(t, 200, "")
		if string(a.body) != content || a.header.Get("Content-Length") != fmt.Sprint(len(content)) || a.header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%s: %d bytes back, %v", c.name, len(a.body), a.header)
		}
	}
	if out, _ := p.events(p.sh(box, "stat -c %a /e /f"), 0).rest(); out["stdout"] != "750\n751\n" {
		t.Errorf("mode %v", out)
	}
	p.events(p.sh(box, "printf x > '/tmp/ä \"b\"'"), 0).rest()
	_, params, err := mime.ParseMediaType(p.download(box, `/tmp/ä "b"`).header.Get("Content-Disposition"))
	if err != nil || params["filename"] != `ä "b"` {
		t.Errorf("names of files: %v %v", params, err)
	}
	a := p.ask("POST", box+"/files/download", map[string]any{"path": "/new", "archive": "tar"})
	if a.want(t, 200, ""); !bytes.Contains(a.body, []byte(content)) || a.header.Get("Content-Type") != "application/x-tar" {
		t.Errorf("a tar of %d bytes, %v", len(a.body), a.header)
	}
	form := part("dest", "", "/unpacked") + part("archive", "", "tar") + part("file", "x", string(a.body))
	if m := p.upload(box, strings.NewReader(form+formEnd)).want(t, 200, ""); m["dest"] != "/unpacked" || m["size"] != float64(len(content)) {
		t.Errorf("unpacked: %v", m)
	}
	if a := p.download(box, "/unpacked/new/d"); string(a.body) != content {
		t.Errorf("unpacked: %d bytes back", len(a.body))
	}
}

// TestRawFiles moves files by the query and a raw body.
func TestRawFiles(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	content := strings.Repeat("content\x00\xff\r\n", 100_000)
	put := func(query, body string) answer {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", "http://box"+box+"/files"+query, strings.NewReader(body))
		must(t, err)
		return p.send(req)
	}
	if m := put("?path=/new/a%20b&mode=751", content).want(t, 200, ""); m["dest"] != "/new/a b" || m["size"] != float64(len(content)) {
		t.Errorf("%v", m)
	}
	if out, _ := p.events(p.sh(box, "stat -c %a '/new/a b'"), 0).rest(); out["stdout"] != "751\n" {
		t.Errorf("mode %v", out)
	}
	a := p.ask("GET", box+"/files?path=/new/a%20b", nil)
	if a.want(t, 200, ""); string(a.body) != content || a.header.Get("Content-Length") != fmt.Sprint(len(content)) {
		t.Errorf("%d bytes back, %v", len(a.body), a.header)
	}
	a = p.ask("GET", box+"/files?path=/new&archive=tar", nil)
	if a.want(t, 200, ""); !bytes.Contains(a.body, []byte(content)) || a.header.Get("Content-Type") != "application/x-tar" {
		t.Errorf("a tar of %d bytes, %v", len(a.body), a.header)
	}
	tree := string(a.body)
	if m := put("?path=/put&archive=tar", tree).want(t, 200, ""); m["dest"] != "/put" || m["size"] != float64(len(content)) {
		t.Errorf("a tree: %v", m)
	}
	a = p.ask("GET", box+"/files?path=/put/new/a%20b", nil)
	if a.want(t, 200, ""); string(a.body) != content {
		t.Errorf("%d bytes of a file of the tree back", len(a.body))
	}
	put("?path=/put&archive=zip", "x").want(t, 422, "invalid_argument")
	put("?path=/put&archive=tar", "no tar").want(t, 422, "invalid_argument")
	put("", "x").want(t, 400, "malformed")
	put("?path=x", "x").want(t, 422, "invalid_argument")
	put("?path=/x&mode=9", "x").want(t, 422, "invalid_argument")
	put("?path=/new/", "x").want(t, 422, "invalid_argument")
	p.ask("GET", box+"/files", nil).want(t, 400, "malformed")
	p.ask("GET", box+"/files?path=/new", nil).want(t, 422, "is_directory")
	p.ask("GET", box+"/files?path=/nothing", nil).want(t, 404, "file_not_found")
	p.ask("GET", box+"/files?path=/new&archive=zip", nil).want(t, 422, "invalid_argument")
	if m := p.ask("GET", box+"/metrics", nil).want(t, 200, ""); m["commands_executed_total"] != 1.0 || m["memory_bytes"] == nil {
		t.Errorf("metrics: %v", m)
	}
	p.ask("POST", box+":stop?timeout_seconds=0", nil).want(t, 200, "")
	put("?path=/x", "x").want(t, 409, "invalid_state")
	p.ask("GET", box+"/files?path=/x", nil).want(t, 409, "invalid_state")
}

func TestUploadRefused(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	file, dest := part("file", "x", "new"), part("dest", "", "/old")
	for _, c := range []struct {
		name, form string
		status     int
		code       string
	}{
		{"without end", dest + file, 400, "malformed"},
		{"without end of the file", dest + file[:len(file)-2], 400, "malformed"},
		{"without end, file first", file[:len(file)-2], 400, "malformed"},
		{"without dest", file + formEnd, 400, "malformed"},
		{"without file", dest + formEnd, 400, "malformed"},
		{"empty", "", 400, "malformed"},
		{"two files", dest + file + file + formEnd, 400, "malformed"},
		{"two files, dest last", file + file + dest + formEnd, 400, "malformed"},
		{"two dests", dest + dest + file + formEnd, 400, "malformed"},
		{"unknown field", part("colour", "", "red") + dest + file + formEnd, 400, "malformed"},
		{"mode behind", dest + file + part("mode", "", "rwx") + formEnd, 422, "invalid_argument"},
		{"mode twice", dest + file + part("mode", "", "644") + part("mode", "", "644") + formEnd, 400, "malformed"},
		{"archive behind", dest + file + part("archive", "", "tar") + formEnd, 400, "malformed"},
		{"mode", part("mode", "", "rwx") + dest + file + formEnd, 422, "invalid_argument"},
		{"archive", part("archive", "", "zip") + dest + file + formEnd, 422, "invalid_argument"},
		{"no tar", part("archive", "", "tar") + part("dest", "", "/directory") + file + formEnd, 422, "invalid_argument"},
		{"mode too large", part("mode", "", "10000") + dest + file + formEnd, 422, "invalid_argument"},
		{"long dest", part("dest", "", strings.Repeat("/x", 50_000)) + file + formEnd, 413, "too_large"},
		{"relative", part("dest", "", "x") + file + formEnd, 422, "invalid_argument"},
		{"no parts", "what is this", 400, "malformed"},
	} {
		p.events(p.sh(box, "printf old > /old"), 0).rest()
		a := p.upload(box, strings.NewReader(c.form))
		if a.status != c.status {
			t.Log(c.name)
		}
		a.want(t, c.status, c.code)
		if got := p.download(box, "/old"); string(got.body) != "old" {
			t.Errorf("%s: the file has become %q", c.name, got.body)
		}
	}
	p.ask("POST", box+"/files/upload", map[string]any{"dest": "/x"}).want(t, 400, "malformed")
	p.ask("POST", box+":stop?timeout_seconds=0", nil).want(t, 200, "")
	p.upload(box, strings.NewReader(dest+file+formEnd)).want(t, 409, "invalid_state")
	p.download(box, "/old").want(t, 409, "invalid_state")
}

func TestDownloadRefused(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	p.events(p.sh(box, `mkfifo /tmp/fifo; mkdir /tmp/dir; ln -s /tmp/loop /tmp/loop; ln -s ../../../../../../etc/shadow /tmp/out`), 0).rest()
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/none": {404, "file_not_found"}, "/tmp/none/x": {404, "file_not_found"}, "/tmp/dir": {422, "is_directory"},
		"/tmp/fifo": {422, "invalid_argument"}, "/dev/null": {422, "invalid_argument"}, "/dev/zero": {422, "invalid_argument"},
		"/tmp/loop": {422, "invalid_argument"}, "/tmp/out": {404, "file_not_found"}, "relative": {422, "invalid_argument"},
		"": {422, "invalid_argument"}, "/tmp/\x00": {422, "invalid_argument"}, "/" + strings.Repeat("x", 5000): {422, "invalid_argument"},
	} {
		if a := p.download(box, path); a.status != want.status {
			t.Errorf("%.20q:", path)
			a.want(t, want.status, want.code)
		}
	}
	if a := p.download(box, "/proc/kcore"); a.status < 400 {
		t.Errorf("kcore: %d, %d bytes", a.status, len(a.body))
	}
	p.ask("POST", box+"/files/download", nil).want(t, 400, "malformed")
	p.ask("POST", box+"/files/download", map[string]any{"path": "/x", "archive": "zip"}).want(t, 422, "invalid_argument")
	p.ask("POST", box+"/files/download", map[string]any{"path": 1}).want(t, 400, "malformed")
}

// TestFilesInPlace holds the routes of files to their replies and their failures.
func TestFilesInPlace(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	for _, body := range []string{`{"path":"/d/e"}`, `{"path":"/d/e","mode":"700","user":"1000"}`} {
		p.ask("POST", box+"/files:mkdir", json.RawMessage(body)).want(t, 200, "")
	}
	p.upload(box, strings.NewReader(part("dest", "", "/d/e/f")+part("user", "", "0:7")+part("file", "x", "12345")+formEnd)).want(t, 200, "")
	if m := p.ask("GET", box+"/files:stat?path=/d/e/f", nil).want(t, 200, ""); m["size"] != 5.0 || m["gid"] != 7.0 || m["owner"] != "root" || m["mode"] != "0644" {
		t.Errorf("a file: %v", m)
	}
	if m := p.ask("GET", box+"/files:list?path=/d&depth=2&page_size=1", nil).want(t, 200, ""); m["next_page_token"] == nil {
		t.Errorf("a page: %v", m)
	}
	if m := p.ask("POST", box+"/files:move", map[string]any{"from": "/d/e/f", "to": "/d/g"}).want(t, 200, ""); m["path"] != "/d/g" {
		t.Errorf("moved: %v", m)
	}
	for what, want := range map[string]int{"/d/g": 200, "/d/e/f": 404, "g": 422} {
		if a := p.ask("HEAD", box+"/files?path="+what, nil); a.status != want || len(a.body) > 0 {
			t.Errorf("HEAD of %s: %d, %q", what, a.status, a.body)
		}
	}
	if m := p.ask("DELETE", box+"/files?path=/d&recursive=true", nil).want(t, 200, ""); m["ok"] != true || m["removed"] != 3.0 {
		t.Errorf("removed: %v", m)
	}
	long := "/" + strings.Repeat("x", 4095)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{"GET", "/files:stat", nil, 400, "malformed"}, {"GET", "/files:stat?path=" + long, nil, 422, "invalid_argument"}, {"GET", "/files:stat?path=%ff", nil, 422, "invalid_argument"},
		{"GET", "/files:list?path=/&depth=0", nil, 422, "invalid_argument"}, {"GET", "/files:list?path=/&depth=x", nil, 422, "invalid_argument"},
		{"GET", "/files:list?path=/&page_token=..", nil, 422, "invalid_argument"}, {"GET", "/files:list?path=/etc/passwd", nil, 422, "invalid_argument"},
		{"POST", "/files:mkdir", nil, 400, "malformed"}, {"POST", "/files:mkdir", json.RawMessage(`{"path":1}`), 400, "malformed"}, {"POST", "/files:mkdir", json.RawMessage(`{"path":"/x","mode":"9"}`), 422, "invalid_argument"},
		{"POST", "/files:move", json.RawMessage(`{"from":"/x"}`), 400, "malformed"}, {"POST", "/files:move", json.RawMessage(`{"from":"/x/..","to":"/y"}`), 422, "invalid_argument"},
		{"DELETE", "/files?path=/", nil, 422, "invalid_argument"}, {"DELETE", "/files?path=/etc", nil, 422, "invalid_argument"}, {"DELETE", "/files?path=/etc&recursive=maybe", nil, 422, "invalid_argument"},
		{"GET", "/files:stat?path=/&user=nosuch", nil, 422, "invalid_argument"}, {"DELETE", "/files?path=/etc/passwd&user=1000", nil, 403, "permission_denied"},
		{"PUT", "/files:stat?path=/", nil, 405, "method_not_allowed"}, {"GET", "/files:grep?path=/", nil, 404, "not_found"},
	} {
		p.ask(c.method, box+c.path, c.body).want(t, c.status, c.code)
	}
}

// TestDownloadShrinks breaks off what can't be what it said it was.
func TestDownloadShrinks(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	p.events(p.sh(box, "head -c 200000000 /dev/zero > /big"), 0).rest()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://box"+box+"/files/download", strings.NewReader(`{"path":"/big"}`))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	p.events(p.sh(box, ": > /big"), 0).rest()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("%d bytes came, and nothing was wrong", n)
	}
	p.download(box, "/big").want(t, 200, "") // others are not touched by that
}

// TestLargeFiles moves much more than the server may take of memory.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	const size = 256 << 20
	before := p.rss(t)
	sum := sha256.New()
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, part("dest", "", "/big")+strings.TrimSuffix(part("file", "x", ""), "\r\n"))
		_, _ = io.Copy(io.MultiWriter(w, sum), io.LimitReader(&counting{}, size))
		_, _ = io.WriteString(w, "\r\n"+formEnd)
		_ = w.Close()
	}()
	p.upload(box, r).want(t, 200, "")
	req, err := http.NewRequestWithContext(context.Background(), "POST", "http://box"+box+"/files/download", strings.NewReader(`{"path":"/big"}`))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	back := sha256.New()
	if n, err := io.Copy(back, resp.Body); err != nil || n != size || !bytes.Equal(back.Sum(nil), sum.Sum(nil)) {
		t.Errorf("%d bytes came back, %v", n, err)
	}
	if grown := p.rss(t) - before; grown > 32<<20 {
		t.Errorf("the server has grown by %d MiB", grown>>20)
	}
}

// TestDownloadOverTCP reads a file at its client's speed. The server splices it: few
// of its bytes pass through the server's memory.
func TestDownloadOverTCP(t *testing.T) {
	t.Parallel()
	p := serve(t, "--listen", "127.0.0.1:0")
	box := p.box()
	const size = 32 << 20
	sum := sha256.New()
	from := io.TeeReader(io.LimitReader(&counting{}, size), sum)
	a := p.upload(box, io.MultiReader(
		strings.NewReader(part("dest", "", "/big")+strings.TrimSuffix(part("file", "x", ""), "\r\n")), from, strings.NewReader("\r\n"+formEnd)))
	a.want(t, 200, "")
	c := p.clients()["tcp"]
	before := p.hasRead(t)
	d, err := c.Download(t.Context(), path.Base(box), options.Download{Path: "/big"})
	must(t, err)
	defer d.Close()
	back := sha256.New()
	for n := int64(1); err == nil; n *= 2 { // slowly at first: the socket is full, and the pipe
		_, err = io.CopyN(back, d, min(n, 1<<20))
	}
	if !errors.Is(err, io.EOF) || !bytes.Equal(back.Sum(nil), sum.Sum(nil)) {
		t.Errorf("another file came back, %v", err)
	}
	if read := p.hasRead(t) - before; read > size/4 {
		t.Errorf("the server has read %d MiB", read>>20)
	}
}

// hasRead returns how many bytes the server has read until now, but for those that
// were spliced.
func (p *program) hasRead(t *testing.T) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))
	must(t, err)
	var n int64
	_, err = fmt.Sscanf(string(b), "rchar: %d", &n)
	must(t, err)
	return n
}

// counting returns bytes that differ.
type counting struct{ n uint32 }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		c.n = c.n*1664525 + 1013904223
		p[i] = byte(c.n >> 24)
	}
	return len(p), nil
}
