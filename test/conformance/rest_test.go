package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"sandbox/core/fault"
	"sandbox/test/openapi"
)

// reply is an answer, read.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// client is how a surface asks a server: over TCP with the key, or not.
type client struct {
	*server
	http *http.Client
	url  string
	key  string
}

func (s *server) client(tcp bool) client {
	if tcp {
		return client{s, s.tcp, s.url, s.key}
	}
	return client{s, s.unix, "http://box", ""}
}

// unchecked asks without the document: for what net/http itself answers.
func (c client) unchecked() client {
	next := *c.http
	next.Transport = c.http.Transport.(*openapi.Transport).Next
	c.http = &next
	return c
}

func (c client) send(r *running, method, path string, body io.Reader, header http.Header) reply {
	r.Helper()
	req, err := http.NewRequestWithContext(r.ctx, method, c.url+path, body)
	must(r, err)
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for name, values := range header {
		if req.Header[name] = values; values[0] == "" {
			req.Header.Del(name)
		}
	}
	resp, err := c.http.Do(req)
	must(r, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge { // of which net/http reads no more, and breaks off
		must(r, err)
	}
	return reply{resp.StatusCode, resp.Header, b}
}

// ask sends JSON; a nil body is none.
func (c client) ask(r *running, method, path string, body any) result {
	r.Helper()
	var content io.Reader
	if body != nil {
		doc, err := json.Marshal(body)
		must(r, err)
		content = bytes.NewReader(doc)
	}
	return c.send(r, method, path, content, http.Header{"Content-Type": {"application/json"}}).result(r)
}

// result reads a reply: a failure is known by its code and its status.
func (a reply) result(r *running) result {
	r.Helper()
	var v object
	_ = json.Unmarshal(a.body, &v)
	if a.status < 300 {
		return result{value: v}
	}
	code, isEnvelope := at(v, "error.code").(string)
	if !isEnvelope { // a problem of the log queries
		code, _ = v["code"].(string)
	}
	return result{fail: &failure{
		is:   func(row fault.Row) bool { return row.Code == code && row.HTTP == a.status },
		text: fmt.Sprintf("%d %s", a.status, a.body),
	}}
}

func overREST(tcp bool) map[string]func(*running, object) result {
	on := func(do func(r *running, c client, a object) result) func(*running, object) result {
		return func(r *running, a object) result { return do(r, r.client(tcp), a) }
	}
	return map[string]func(*running, object) result{
		"create": on(func(r *running, c client, a object) result { return c.ask(r, "POST", "/v1/boxes", r.request(a)) }),
		"get":    on(func(r *running, c client, a object) result { return c.ask(r, "GET", r.path(a), nil) }),
		"list":   on(func(r *running, c client, a object) result { return c.ask(r, "GET", "/v1/boxes"+query(a), nil) }),
		"start":  on(func(r *running, c client, a object) result { return c.ask(r, "POST", r.path(a)+":start", nil) }),
		"stop": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+":stop", object{"timeout_seconds": graceOf(a).Seconds()})
		}),
		"pause": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+":pause", without(a, "box"))
		}),
		"resume": on(func(r *running, c client, a object) result { return c.ask(r, "POST", r.path(a)+":resume", nil) }),
		"snapshot": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+":snapshot", without(a, "box"))
		}),
		"rollback": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+":rollback", without(a, "box"))
		}),
		"clone": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+":clone", without(a, "box"))
		}),
		"snapshots": on(func(r *running, c client, a object) result { return c.ask(r, "GET", "/v1/snapshots"+query(a), nil) }),
		"diff": on(func(r *running, c client, a object) result {
			return c.ask(r, "GET", r.path(a)+"/diff"+query(without(a, "box")), nil)
		}),
		"update": on(func(r *running, c client, a object) result { return c.ask(r, "PATCH", r.path(a), without(a, "box")) }),
		"remove": on(func(r *running, c client, a object) result {
			return c.ask(r, "DELETE", r.path(a)+query(without(a, "box")), nil)
		}),
		"exec": on(func(r *running, c client, a object) result { return c.exec(r, a) }),
		"start_exec": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+"/exec", without(a, "box"))
		}),
		"get_exec": on(func(r *running, c client, a object) result { return c.ask(r, "GET", r.execPath(a), nil) }),
		"execs": on(func(r *running, c client, a object) result {
			return c.ask(r, "GET", r.path(a)+"/execs"+query(without(a, "box")), nil)
		}),
		"cancel": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.execPath(a)+":cancel", without(a, "box", "exec"))
		}),
		"signal": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.execPath(a)+":signal", without(a, "box", "exec"))
		}),
		"events":   on(func(r *running, c client, a object) result { return c.events(r, a) }),
		"upload":   on(func(r *running, c client, a object) result { return c.upload(r, a) }),
		"download": on(func(r *running, c client, a object) result { return c.download(r, a) }),
		"stat_file": on(func(r *running, c client, a object) result {
			return c.ask(r, "GET", r.path(a)+"/files:stat"+query(without(a, "box")), nil)
		}),
		"list_files": on(func(r *running, c client, a object) result {
			return c.ask(r, "GET", r.path(a)+"/files:list"+query(without(a, "box")), nil)
		}),
		"make_directory": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+"/files:mkdir", without(a, "box"))
		}),
		"move_file": on(func(r *running, c client, a object) result {
			return c.ask(r, "POST", r.path(a)+"/files:move", without(a, "box"))
		}),
		"remove_file": on(func(r *running, c client, a object) result {
			return c.ask(r, "DELETE", r.path(a)+"/files"+query(without(a, "box")), nil)
		}),
		"watch_files": on(func(r *running, c client, a object) result { return c.watchFiles(r, a) }),
		"run": on(func(r *running, c client, a object) result {
			if a["image"] == nil {
				a["image"] = "default"
			}
			return c.ask(r, "POST", "/v1/run", without(r.request(a), "none"))
		}),
		"gc":       on(func(r *running, c client, a object) result { return c.ask(r, "POST", "/v1/gc", without(a, "box")) }),
		"new_key":  on(func(r *running, c client, a object) result { return c.ask(r, "POST", "/v1/keys", a) }),
		"keys":     on(func(r *running, c client, _ object) result { return c.ask(r, "GET", "/v1/keys", nil) }),
		"http":     on(func(r *running, c client, a object) result { return c.raw(r, tcp, a) }),
		"bare":     on(func(r *running, c client, a object) result { return c.unchecked().raw(r, tcp, a) }),
		"terminal": on(func(r *running, c client, a object) result { return c.socketAt(r, r.path(a)+"/attach", a) }),
		"attach":   on(func(r *running, c client, a object) result { return c.socketAt(r, r.execPath(a)+"/attach", a) }),
	}
}

func (r *running) path(a object) string { return "/v1/boxes/" + url.PathEscape(r.box(a)) }

func (r *running) execPath(a object) string {
	return r.path(a) + "/exec/" + url.PathEscape(text(a["exec"], r.vars["exec"]))
}

// query writes members as a query string.
func query(a object) string {
	q := url.Values{}
	for name, v := range a {
		if list, ok := v.([]any); ok {
			for _, item := range list {
				q.Add(name, fmt.Sprint(item))
			}
			continue
		}
		if v != nil {
			q.Set(name, fmt.Sprint(v))
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// exec runs a command to its end: its record, with its output.
func (c client) exec(r *running, a object) result {
	r.Helper()
	got := c.ask(r, "POST", r.path(a)+"/exec", without(a, "box"))
	if got.fail != nil {
		return got
	}
	at := object{"box": r.box(a), "exec": got.value["id"]}
	events := c.events(r, at)
	if events.fail != nil {
		return events
	}
	if got = c.ask(r, "GET", r.execPath(at), nil); got.fail == nil {
		got.value["stdout"], got.value["stderr"] = events.value["stdout"], events.value["stderr"]
	}
	return got
}

// events reads a stream of events to its end: the kinds, the data, and the
// text of each stream.
func (c client) events(r *running, a object) result {
	r.Helper()
	header := http.Header{}
	if a["last_event_id"] != nil {
		header.Set("Last-Event-ID", fmt.Sprint(a["last_event_id"]))
	}
	got := c.send(r, "GET", r.execPath(a)+"/events"+query(without(a, "box", "exec", "last_event_id")), nil, header)
	if got.status != http.StatusOK {
		return got.result(r)
	}
	kinds, data := []string{}, []any{}
	texts := map[string]string{}
	for block := range strings.SplitSeq(strings.TrimSuffix(string(got.body), "\n\n"), "\n\n") {
		kind, one := r.event(block)
		if kind == "" { // a comment
			continue
		}
		kinds, data = append(kinds, kind), append(data, one)
		if kind == "log" {
			texts[one["stream"].(string)] += one["data"].(string)
		}
	}
	return result{value: toObject(object{"kinds": kinds, "data": data, "stdout": texts["stdout"], "stderr": texts["stderr"], "type": got.header.Get("Content-Type")})}
}

// schemas of the data of events.
var eventSchemas = map[string]string{"log": "LogEvent", "exit": "ExitEvent", "gap": "GapEvent"}

// event reads one event and holds it against the document.
func (r *running) event(block string) (kind string, data object) {
	r.Helper()
	id := ""
	for line := range strings.SplitSeq(block, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "event":
			kind = value
		case "id":
			id = value
		case "data":
			must(r, json.Unmarshal([]byte(value), &data))
			must(r, r.document.Validate("/components/schemas/"+eventSchemas[kind], []byte(value)))
		}
	}
	if kind != "" && kind != "gap" && id != fmt.Sprint(data["seq"]) {
		r.Errorf("the event %s has the id %s", brief(data), id)
	}
	return kind, data
}

// upload sends a form; order says in which order its fields come.
func (c client) upload(r *running, a object) result {
	r.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	order := []any{"dest", "file"}
	if a["order"] != nil {
		order = a["order"].([]any)
	}
	for _, field := range order {
		if field == "file" {
			part, err := form.CreateFormFile("file", text(a["filename"], "file"))
			must(r, err)
			_, _ = io.WriteString(part, text(a["content"], ""))
			continue
		}
		must(r, form.WriteField(field.(string), text(a[field.(string)], "")))
	}
	must(r, form.Close())
	return c.send(r, "POST", r.path(a)+"/files/upload", &b, http.Header{"Content-Type": {form.FormDataContentType()}}).result(r)
}

// watchFiles returns the events of a watch while a command runs that ends it.
func (c client) watchFiles(r *running, a object) result {
	r.Helper()
	req, err := http.NewRequestWithContext(r.ctx, "GET", c.url+r.path(a)+"/files:watch"+query(without(a, "box", "cmd", "reads")), nil)
	must(r, err)
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	must(r, err)
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		if ran := c.exec(r, object{"box": r.box(a), "cmd": a["cmd"]}); ran.fail != nil {
			return ran
		}
	}
	body, err := io.ReadAll(resp.Body)
	must(r, err)
	if resp.StatusCode != http.StatusOK {
		return reply{resp.StatusCode, resp.Header, body}.result(r)
	}
	events := []any{}
	for line := range strings.SplitSeq(string(body), "\n") {
		if doc, ok := strings.CutPrefix(line, "data: "); ok {
			var e object
			must(r, json.Unmarshal([]byte(doc), &e))
			events = append(events, e)
		}
	}
	return result{value: toObject(object{"events": events})}
}

// download returns the content, its type and what its name would be.
func (c client) download(r *running, a object) result {
	r.Helper()
	doc, err := json.Marshal(without(a, "box"))
	must(r, err)
	got := c.send(r, "POST", r.path(a)+"/files/download", bytes.NewReader(doc), http.Header{"Content-Type": {"application/json"}})
	if got.status != http.StatusOK {
		return got.result(r)
	}
	return result{value: object{
		"content": string(got.body), "type": got.header.Get("Content-Type"),
		"disposition": got.header.Get("Content-Disposition"), "length": got.header.Get("Content-Length"),
	}}
}

// raw sends a request as it stands: server is another one than the usual, key
// another key or "" for none. It returns the status, the head and the body.
func (c client) raw(r *running, tcp bool, a object) result {
	r.Helper()
	if other, ok := a["server"].(string); ok {
		c = r.others[other]().client(tcp)
	}
	if key, ok := a["key"].(string); ok {
		c.key = key
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for name, v := range toObject(a["header"]) {
		header.Set(name, fmt.Sprint(v))
	}
	var body io.Reader
	switch v := a["body"].(type) {
	case nil:
	case string:
		body = strings.NewReader(v)
	default:
		doc, err := json.Marshal(v)
		must(r, err)
		body = bytes.NewReader(doc)
	}
	got := c.send(r, text(a["method"], "GET"), a["path"].(string), body, header)
	heads := object{}
	for name := range got.header {
		heads[name] = got.header.Get(name)
	}
	value := object{"status": got.status, "header": heads, "text": string(got.body)}
	var doc any
	if json.Unmarshal(got.body, &doc) == nil {
		value["body"] = doc
	}
	return result{value: toObject(value)}
}
