package e2b

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"sandbox/core"
	"sandbox/httpd/e2b/protocol"
)

// plain is a route that is no call of Connect: it writes the reply if it succeeds
// and returns the failure if not.
type plain func(w http.ResponseWriter, r *http.Request) error

// inside is such a route of one box.
type inside func(w http.ResponseWriter, r *http.Request, box *core.Box) error

// handler finds the route of a request.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, route := range s.control() {
		mux.Handle(pattern, s.keyed(route))
	}
	for pattern, route := range s.boxed() {
		mux.Handle(pattern, s.entered(route))
	}
	mux.HandleFunc("GET /files", s.signed("read", s.readFile))
	mux.HandleFunc("POST /files", s.signed("write", s.writeFiles))
	for path, call := range s.calls() {
		mux.Handle("POST "+path, s.called(call))
	}
	mux.Handle("/", s.keyed(noRoute))
	return mux
}

// control returns the routes of the control plane, for clients with a key.
func (s *Server) control() map[string]plain {
	return map[string]plain{
		"POST /sandboxes":                 s.createBox,
		"POST /v2/sandboxes":              s.createBox,
		"GET /sandboxes":                  s.listBoxes,
		"GET /v2/sandboxes":               s.listBoxes,
		"GET /sandboxes/{id}":             s.showBox,
		"DELETE /sandboxes/{id}":          s.removeBox,
		"POST /sandboxes/{id}/connect":    s.connectBox,
		"POST /v2/sandboxes/{id}/connect": s.connectBox,
		"POST /sandboxes/{id}/resume":     s.resumeBox,
		"POST /sandboxes/{id}/pause":      s.pauseBox,
		"POST /sandboxes/{id}/timeout":    s.setTimeout,
		"POST /sandboxes/{id}/refreshes":  s.refreshBox,
		"GET /sandboxes/{id}/metrics":     s.showMetrics,
		"PUT /sandboxes/{id}/network":     absent("the network of a box is chosen when it is made"),
		"POST /sandboxes/{id}/snapshots":  absent("boxes have no snapshots"),
		"POST /sandboxes/{id}/fork":       absent("a box can't be forked"),
		"GET /sandboxes/{id}/logs":        absent("the output of commands is in the log table: sandbox logs query"),
		"GET /v2/sandboxes/{id}/logs":     absent("the output of commands is in the log table: sandbox logs query"),
		"GET /snapshots":                  absent("boxes have no snapshots"),
		"/templates":                      absent(noTemplates),
		"/templates/":                     absent(noTemplates),
		"/v2/templates":                   absent(noTemplates),
		"/v2/templates/":                  absent(noTemplates),
		"/v3/templates":                   absent(noTemplates),
		"/default-templates":              absent(noTemplates),
		"/volumes":                        absent("E2B's volumes are not here: boxes made through the native API have host directories as volumes"),
		"/volumes/":                       absent("E2B's volumes are not here: boxes made through the native API have host directories as volumes"),
		"/secrets":                        absent("no secrets are kept: pass them in envs"),
		"/secrets/":                       absent("no secrets are kept: pass them in envs"),
	}
}

// boxed returns the plain routes of a box, for clients with its token.
func (s *Server) boxed() map[string]inside {
	return map[string]inside{
		"GET " + healthPath: func(w http.ResponseWriter, _ *http.Request, _ *core.Box) error {
			w.WriteHeader(http.StatusNoContent)
			return nil
		},
		"POST /execute":                    s.runCode,
		"POST /contexts":                   s.createContext,
		"GET /contexts":                    s.listContexts,
		"DELETE /contexts/{context}":       s.removeContext,
		"POST /contexts/{context}/restart": s.restartContext,
	}
}

// calls returns the handlers of the calls of Connect by their paths.
func (s *Server) calls() map[string]http.Handler {
	with := connect.WithHandlerOptions(connect.WithReadMaxBytes(maxMessage))
	calls := map[string]http.Handler{}
	add(calls, "/process.Process/List", s.listProcesses, with)
	add(calls, "/process.Process/Update", s.updateProcess, with)
	add(calls, "/process.Process/SendInput", s.sendInput, with)
	add(calls, "/process.Process/SendSignal", s.sendSignal, with)
	add(calls, "/process.Process/CloseStdin", s.closeStdin, with)
	add(calls, "/filesystem.Filesystem/Stat", s.statFile, with)
	add(calls, "/filesystem.Filesystem/MakeDir", s.makeDirectory, with)
	add(calls, "/filesystem.Filesystem/Move", s.moveFile, with)
	add(calls, "/filesystem.Filesystem/ListDir", s.listDirectory, with)
	add(calls, "/filesystem.Filesystem/Remove", s.removeFile, with)
	add(calls, "/filesystem.Filesystem/CreateWatcher", s.createWatcher, with)
	add(calls, "/filesystem.Filesystem/GetWatcherEvents", s.watcherEvents, with)
	add(calls, "/filesystem.Filesystem/RemoveWatcher", s.removeWatcher, with)
	addStream(calls, "/process.Process/Start", s.startProcess, with)
	addStream(calls, "/process.Process/Connect", s.connectProcess, with)
	addStream(calls, "/filesystem.Filesystem/WatchDir", s.watchDirectory, with)
	calls[streamInput] = s.interruptible(connect.NewClientStreamHandler(streamInput,
		func(ctx context.Context, in *connect.ClientStream[protocol.StreamInputRequest]) (*connect.Response[protocol.StreamInputResponse], error) {
			return &connect.Response[protocol.StreamInputResponse]{}, failed(s.streamInput(ctx, in))
		}, with))
	return calls
}

// streamInput is the path of the one call whose client sends a stream.
const streamInput = "/process.Process/StreamInput"

// healthPath is where SDKs ask whether a box runs.
const healthPath = "/health"

// add adds a call that has one answer.
func add[Q, A any](calls map[string]http.Handler, path string, call func(context.Context, *connect.Request[Q]) (*A, error), with connect.HandlerOption) {
	calls[path] = connect.NewUnaryHandler(path, func(ctx context.Context, q *connect.Request[Q]) (*connect.Response[A], error) {
		answer, err := call(ctx, q)
		if err != nil {
			return nil, failed(err)
		}
		return connect.NewResponse(answer), nil
	}, with)
}

// addStream adds a call that answers with a stream.
func addStream[Q, A any](calls map[string]http.Handler, path string, call func(context.Context, *connect.Request[Q], *connect.ServerStream[A]) error, with connect.HandlerOption) {
	calls[path] = connect.NewServerStreamHandler(path, func(ctx context.Context, q *connect.Request[Q], out *connect.ServerStream[A]) error {
		return failed(call(ctx, q, out))
	}, with)
}
