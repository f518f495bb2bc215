package httpd

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"sandbox/api"
	"sandbox/core/fault"
)

// Route is one row of the table of routes.
type Route struct {
	Method string // "*" for all
	// Pattern is the path as the contract writes it, without prefix and
	// without /api: /v1/boxes/{id}:stop.
	Pattern string
	// Permission is the one that the key needs; "" if any live key will do.
	Permission string
	// Open marks a route that needs no key at all.
	Open bool
	// Stream marks a route whose body or reply goes on for as long as bytes
	// come: there is no deadline for the whole of it.
	Stream bool
	// Rest marks a route whose last parameter takes the rest of the path, with its
	// slashes and colons.
	Rest bool
	// Program marks a route that a program in a box answers, for as long as bytes
	// come in either direction. Sessions of the web console don't reach it: the
	// program's pages would have their host.
	Program bool
	// WebSocket marks a route that also takes the key in a subprotocol, since
	// a browser can't set headers there.
	WebSocket bool

	handle   func(*Server, http.ResponseWriter, *request) error
	failures rendering // how its failures look; nil for envelope
	name     string    // method and pattern, set by newTable
}

// Routes returns all routes of the service, in the order of docs/openapi.yaml.
func Routes() []Route { return slices.Concat(boxRoutes(), codeRoutes(), otherRoutes()) }

// boxRoutes returns the routes of boxes and of what is in them.
func boxRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/boxes", Permission: api.MayUseBoxes, handle: (*Server).createBox},
		{Method: "GET", Pattern: "/v1/boxes", Permission: api.MayUseBoxes, handle: (*Server).listBoxes},
		{Method: "GET", Pattern: "/v1/boxes/{id}", Permission: api.MayUseBoxes, handle: (*Server).getBox},
		{Method: "PATCH", Pattern: "/v1/boxes/{id}", Permission: api.MayUseBoxes, handle: (*Server).updateBox},
		{Method: "DELETE", Pattern: "/v1/boxes/{id}", Permission: api.MayUseBoxes, handle: (*Server).removeBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}:stop", Permission: api.MayUseBoxes, handle: (*Server).stopBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}:start", Permission: api.MayUseBoxes, handle: (*Server).startBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}:pause", Permission: api.MayUseBoxes, handle: (*Server).pauseBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}:resume", Permission: api.MayUseBoxes, handle: (*Server).resumeBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}:snapshot", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).snapshotBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}:rollback", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).rollbackBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}:clone", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).cloneBox},
		{Method: "GET", Pattern: "/v1/boxes/{id}/diff", Permission: api.MayUseBoxes, handle: (*Server).diffBox},
		{Method: "POST", Pattern: "/v1/boxes/{id}/exec", Permission: api.MayUseBoxes, handle: (*Server).startExec},
		{Method: "GET", Pattern: "/v1/boxes/{id}/execs", Permission: api.MayUseBoxes, handle: (*Server).listExecs},
		{Method: "GET", Pattern: "/v1/boxes/{id}/exec/{eid}", Permission: api.MayUseBoxes, handle: (*Server).getExec},
		{Method: "GET", Pattern: "/v1/boxes/{id}/exec/{eid}/events", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).events},
		{Method: "GET", Pattern: "/v1/boxes/{id}/exec/{eid}/attach", Permission: api.MayUseBoxes, Stream: true, WebSocket: true, handle: (*Server).attachExec},
		{Method: "POST", Pattern: "/v1/boxes/{id}/exec/{eid}:cancel", Permission: api.MayUseBoxes, handle: (*Server).cancelExec},
		{Method: "POST", Pattern: "/v1/boxes/{id}/exec/{eid}:signal", Permission: api.MayUseBoxes, handle: (*Server).signalExec},
		{Method: "POST", Pattern: "/v1/boxes/{id}/exec/{eid}:resize", Permission: api.MayUseBoxes, handle: (*Server).resizeExec},
		{Method: "POST", Pattern: "/v1/boxes/{id}/exec/{eid}:write_stdin", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).writeStdin},
		{Method: "POST", Pattern: "/v1/boxes/{id}/exec/{eid}:close_stdin", Permission: api.MayUseBoxes, handle: (*Server).closeStdin},
		{Method: "GET", Pattern: "/v1/boxes/{id}/attach", Permission: api.MayUseBoxes, Stream: true, WebSocket: true, handle: (*Server).terminal},
		{Method: "POST", Pattern: "/v1/boxes/{id}/files/upload", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).upload},
		{Method: "POST", Pattern: "/v1/boxes/{id}/files/download", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).download},
		{Method: "PUT", Pattern: "/v1/boxes/{id}/files", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).putFile},
		{Method: "GET", Pattern: "/v1/boxes/{id}/files", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).getFile},
		{Method: "HEAD", Pattern: "/v1/boxes/{id}/files", Permission: api.MayUseBoxes, handle: (*Server).hasFile},
		{Method: "DELETE", Pattern: "/v1/boxes/{id}/files", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).removeFile},
		{Method: "GET", Pattern: "/v1/boxes/{id}/files:stat", Permission: api.MayUseBoxes, handle: (*Server).statFile},
		{Method: "GET", Pattern: "/v1/boxes/{id}/files:list", Permission: api.MayUseBoxes, handle: (*Server).listFiles},
		{Method: "POST", Pattern: "/v1/boxes/{id}/files:mkdir", Permission: api.MayUseBoxes, handle: (*Server).makeDirectory},
		{Method: "POST", Pattern: "/v1/boxes/{id}/files:move", Permission: api.MayUseBoxes, handle: (*Server).moveFile},
		{Method: "GET", Pattern: "/v1/boxes/{id}/files:watch", Permission: api.MayUseBoxes, Stream: true, WebSocket: true, handle: (*Server).watchFiles},
		{Method: "GET", Pattern: "/v1/boxes/{id}/metrics", Permission: api.MayUseBoxes, handle: (*Server).boxMetrics},
		{Method: "POST", Pattern: "/v1/boxes/{id}:share", Permission: api.MayUseBoxes, handle: (*Server).shareBox},
		{Method: anyVerb, Pattern: "/v1/boxes/{id}/ports/{port}/{path}", Permission: api.MayUseBoxes, Stream: true, Rest: true, Program: true, handle: (*Server).toPort},
		{Method: anyVerb, Pattern: "/v1/boxes/{id}/ports/{port}", Permission: api.MayUseBoxes, Program: true, handle: (*Server).toRoot},
		{Method: "GET", Pattern: "/v1/boxes/{id}/ports/{port}:connect", Permission: api.MayUseBoxes, Stream: true, WebSocket: true, handle: (*Server).connectPort},
	}
}

// codeRoutes returns the routes of code in boxes.
func codeRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/boxes/{id}/code", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).runCode},
		{Method: "POST", Pattern: "/v1/boxes/{id}/contexts", Permission: api.MayUseBoxes, handle: (*Server).createContext},
		{Method: "GET", Pattern: "/v1/boxes/{id}/contexts", Permission: api.MayUseBoxes, handle: (*Server).listContexts},
		{Method: "GET", Pattern: "/v1/boxes/{id}/contexts/{cid}", Permission: api.MayUseBoxes, handle: (*Server).getContext},
		{Method: "POST", Pattern: "/v1/boxes/{id}/contexts/{cid}:interrupt", Permission: api.MayUseBoxes, handle: (*Server).interruptContext},
		{Method: "POST", Pattern: "/v1/boxes/{id}/contexts/{cid}:restart", Permission: api.MayUseBoxes, handle: (*Server).restartContext},
		{Method: "DELETE", Pattern: "/v1/boxes/{id}/contexts/{cid}", Permission: api.MayUseBoxes, handle: (*Server).removeContext},
	}
}

// otherRoutes returns the routes of the server itself, and of its images, keys and logs.
func otherRoutes() []Route {
	return []Route{
		{Method: anyVerb, Pattern: "/v1/shares/{token}/{path}", Open: true, Stream: true, Rest: true, Program: true, handle: (*Server).toShare},
		{Method: anyVerb, Pattern: "/v1/shares/{token}", Open: true, Program: true, handle: (*Server).toShareRoot},
		{Method: "POST", Pattern: "/v1/run", Permission: api.MayUseBoxes, handle: (*Server).run},
		{Method: "POST", Pattern: "/v1/mcp", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).serveTools},
		{Method: "GET", Pattern: "/v1/mcp", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).serveTools},
		{Method: "DELETE", Pattern: "/v1/mcp", Permission: api.MayUseBoxes, handle: (*Server).serveTools},
		{Method: "GET", Pattern: "/v1/snapshots", Permission: api.MayUseBoxes, handle: (*Server).listSnapshots},
		{Method: "GET", Pattern: "/v1/images", Permission: api.MayUseBoxes, handle: (*Server).listImages},
		{Method: "GET", Pattern: "/v1/images/{reference}", Permission: api.MayUseBoxes, Rest: true, handle: (*Server).getImage},
		{Method: "DELETE", Pattern: "/v1/images/{reference}", Permission: api.MayUseBoxes, Rest: true, handle: (*Server).removeImage},
		{Method: "POST", Pattern: "/v1/images:pull", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).pullImage},
		{Method: "POST", Pattern: "/v1/images:import", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).importImage},
		{Method: "POST", Pattern: "/v1/images:build", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).buildImage},
		{Method: "GET", Pattern: "/v1/images:export", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).exportImage},
		{Method: "POST", Pattern: "/v1/images:push", Permission: api.MayUseBoxes, Stream: true, handle: (*Server).pushImage},
		{Method: "GET", Pattern: "/v1/info", handle: (*Server).info},
		{Method: "POST", Pattern: "/v1/gc", Permission: api.MayUseBoxes, handle: (*Server).collect},
		{Method: "GET", Pattern: "/v1/me", handle: (*Server).me},
		{Method: "GET", Pattern: "/v1/keys", Permission: api.MayUseKeys, handle: (*Server).listKeys},
		{Method: "POST", Pattern: "/v1/keys", Permission: api.MayUseKeys, handle: (*Server).createKey},
		{Method: "DELETE", Pattern: "/v1/keys/{id}", Permission: api.MayUseKeys, handle: (*Server).deleteKey},
		{Method: "GET", Pattern: "/v1/observability/schema", Permission: api.MayQueryLogs, failures: problems{}, handle: (*Server).describeLogs},
		{Method: "POST", Pattern: "/v1/observability/query", Permission: api.MayQueryLogs, failures: problems{largeStatement: true}, handle: (*Server).queryLogs},
		{Method: "POST", Pattern: "/v1/observability/logs/search", Permission: api.MayQueryLogs, failures: problems{}, handle: (*Server).searchLogs},
		{Method: "POST", Pattern: "/v1/observability/logs/aggregate", Permission: api.MayQueryLogs, failures: problems{}, handle: (*Server).aggregateLogs},
		{Method: "POST", Pattern: "/v1/logs", Permission: api.MayWriteLogs, failures: otlp{}, handle: (*Server).exportLogs},
		{Method: "GET", Pattern: "/healthz", Open: true, handle: (*Server).health},
		{Method: "GET", Pattern: "/openapi.yaml", Open: true, handle: (*Server).openapi},
		{Method: "GET", Pattern: "/docs", Open: true, handle: (*Server).reference},
		{Method: "GET", Pattern: "/metrics", handle: (*Server).showMetrics},
	}
}

// path returns the pattern in httprouter's form without its verb, and the verb:
// /v1/boxes/:id and stop.
func (r Route) path() (path, verb string) {
	path, verb = splitVerb(r.Pattern)
	path = strings.NewReplacer("{", ":", "}", "").Replace(path)
	if at := strings.LastIndexByte(path, ':'); r.Rest {
		path = path[:at] + "*" + path[at+1:]
	}
	return path, verb
}

// splitVerb splits a path at the last colon of its last segment. It is here
// because httprouter has no paths like /boxes/:id:stop.
func splitVerb(path string) (rest, verb string) {
	at := strings.LastIndexByte(path, ':')
	if at < 0 || strings.IndexByte(path[at:], '/') >= 0 {
		return path, ""
	}
	return path[:at], path[at+1:]
}

// node is a path of the service: its routes by verb and method.
type node map[string]map[string]*Route

// table finds routes. httprouter matches the path alone, because which methods a
// path has depends on its verb.
type table struct {
	paths *httprouter.Router
}

// anyMethod is the method that all paths are registered under in httprouter.
const anyMethod = http.MethodGet

// newTable registers the routes. enter returns the handler of one path.
func newTable(prefix string, enter func(node) httprouter.Handle) *table {
	t := &table{paths: httprouter.New()}
	nodes := map[string]node{}
	for _, r := range Routes() {
		path, verb := r.path()
		r.name = r.Method + " " + r.Pattern
		for _, at := range mounts(path, prefix) {
			n, known := nodes[at]
			if !known {
				n = node{}
				nodes[at] = n
				t.paths.Handle(anyMethod, at, enter(n))
			}
			if n[verb] == nil {
				n[verb] = map[string]*Route{}
			}
			n[verb][r.Method] = &r
		}
	}
	return t
}

// find returns the handler of a path, or nil if there is none, and the path's
// parameters, still escaped. A verb behind a parameter is part of it; any other
// verb is left out.
func (t *table) find(path string) (httprouter.Handle, httprouter.Params) {
	handle, params, _ := t.paths.Lookup(anyMethod, path)
	if noun, verb := splitVerb(path); handle == nil && verb != "" {
		handle, params, _ = t.paths.Lookup(anyMethod, noun)
	}
	return handle, params
}

// route returns the route of a request whose path has led to n, and sets the
// request's parameters. Errors: Malformed, NotFound (also for an unknown verb),
// MethodNotAllowed; then allowed has the methods that the path does have.
func (n node) route(r *request, params httprouter.Params) (route *Route, allowed []string, err error) {
	if last := len(params) - 1; n.any().Rest {
		r.rest = strings.TrimPrefix(params[last].Value, "/")
	}
	for i := range params {
		if params[i].Value, err = url.PathUnescape(params[i].Value); err != nil {
			return nil, nil, fault.New(fault.Malformed, "the path is not escaped correctly")
		}
	}
	verb := n.verb(r, params)
	r.params = params
	methods := n[verb]
	if methods == nil {
		return nil, nil, errNoRoute(r)
	}
	for _, method := range []string{r.Method, anyVerb} {
		if route = methods[method]; route != nil {
			return route, nil, nil
		}
	}
	for method := range methods {
		allowed = append(allowed, method)
	}
	slices.Sort(allowed)
	return nil, allowed, fault.New(fault.MethodNotAllowed, "the method %s is not allowed for %s, which has %s", brief(r.Method), brief(r.URL.Path), strings.Join(allowed, ", "))
}

// verb takes the verb out of a request whose path has led to n: out of the last
// parameter if the path ends in one, else out of the path itself.
func (n node) verb(r *request, params httprouter.Params) (verb string) {
	last := len(params) - 1
	switch route := n.any(); {
	case route.Rest:
		params[last].Value = strings.TrimPrefix(params[last].Value, "/")
	case strings.HasSuffix(route.Pattern, "}") || strings.Contains(route.Pattern, "}:"):
		params[last].Value, verb = splitVerb(params[last].Value)
	default:
		_, verb = splitVerb(r.path)
	}
	return verb
}

// any returns one of the routes, which all have the same path.
func (n node) any() *Route {
	for _, methods := range n {
		for _, route := range methods {
			return route
		}
	}
	return &Route{}
}

func errNoRoute(r *request) error {
	return fault.New(fault.NotFound, "no route %s %s", brief(r.Method), brief(r.URL.Path))
}

// brief shortens text that a client sent, so that a message can quote it.
func brief(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
