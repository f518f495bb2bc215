package code

import (
	"context"
	_ "embed"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// program is how a language runs a kernel.
type program struct {
	name string // of the language's program
	flag string // behind which it takes a program as text
	// load reads the source of the kernel from standard input, up to a NUL, and
	// runs it.
	load   string
	source string
}

// The sources of the kernels.
var (
	//go:embed kernels/python.py
	pythonKernel string
)

var programs = map[api.Language]program{
	api.Python: {"python3", "-c", `import os, sys
buffer = b""
while b"\0" not in buffer:
    piece = os.read(0, 65536)
    if not piece:
        sys.exit(0)
    buffer += piece
source, _, buffer = buffer.partition(b"\0")
exec(compile(source, "<kernel>", "exec"))
`, pythonKernel},
}

// label stands before the id of a context in the last argument of its process. The number
// is that of the protocol between us and the kernel.
const label = "sandbox-context/1:"

// kernel is the process of a context, which this program has the use of.
type kernel struct {
	*core.Exec
	about api.CodeContext
	fresh bool // it was started just now
}

// start starts the process of a context.
func start(ctx context.Context, box *core.Box, id string, o options.CodeContext) (kernel, error) {
	p, ok := programs[o.Language]
	if !ok {
		return kernel{}, fault.New(fault.Unsupported, "code in %s can't be run yet", o.Language)
	}
	e, err := box.Exec(ctx, options.Exec{
		Cmd: []string{p.name, p.flag, p.load, label + id},
		Env: o.Env, WorkingDir: o.WorkingDir, User: o.User, Stdin: true, KeepStdin: true,
	})
	if err != nil {
		return kernel{}, err
	}
	about, _ := contextOf(e.Record())
	return kernel{e, about, true}, nil
}

// attach takes over the process of a context. What it still runs for a program that has
// died is interrupted; if it runs nothing, it takes no notice. Errors: ContextNotFound,
// InvalidState (another program runs code in it).
func attach(ctx context.Context, box *core.Box, about api.CodeContext) (kernel, error) {
	e, err := box.Attach(ctx, about.ExecID)
	if fault.Is(err, fault.InvalidState) {
		if _, running := box.ExecRecord(ctx, about.ExecID); running == nil {
			return kernel{}, fault.New(fault.InvalidState, "another program runs code in context %s: wait until it has ended, or make another context", about.ID)
		}
	}
	if err != nil {
		return kernel{}, gone(err, box, about.ID)
	}
	// Init has sent it when it answers, so it does not come behind the request. If the
	// process has ended, its reader is told.
	_, _ = box.Signal(ctx, about.ExecID, int(unix.SIGINT))
	return kernel{e, about, false}, nil
}

// contextOf returns the context whose process an exec is, if it is one.
func contextOf(e api.Exec) (api.CodeContext, bool) {
	if len(e.Cmd) != 4 {
		return api.CodeContext{}, false
	}
	id, ok := strings.CutPrefix(e.Cmd[3], label)
	for language, p := range programs {
		if ok && options.IsCodeContext(id) && p.name == e.Cmd[0] {
			return api.CodeContext{
				ID: id, BoxID: e.BoxID, ExecID: e.ID, Language: language,
				WorkingDir: e.WorkingDir, User: e.User, CreatedAt: e.CreatedAt,
			}, true
		}
	}
	return api.CodeContext{}, false
}
