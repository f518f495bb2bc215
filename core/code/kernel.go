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

// program is how a language runs a kernel. The process reads the source of the kernel
// from standard input, and then the requests.
type program struct {
	argv   [3]string // how the language's program is started
	source string    // of the kernel, with what ends it
	each   string    // what each request begins with
	deaf   bool      // it loses a SIGINT that comes in a bad moment, and no late one comes to the next run
}

// The sources of the kernels.
var (
	//go:embed kernels/python.py
	pythonKernel string
	//go:embed kernels/ipython.py
	ipythonPart string
	//go:embed kernels/charts.py
	chartsPart string
	//go:embed kernels/javascript.js
	javascriptKernel string
	//go:embed kernels/bash.sh
	bashKernel string
)

var programs = map[api.Language]program{
	// Python hears of a signal between two of its steps: one that comes as it begins to
	// sleep, or to wait in some other way, does not wake it.
	api.Python:     {argv: [3]string{"python3", "-c", loadPython}, source: pythonKernel + "\x00" + ipythonPart + "\x00" + chartsPart + "\x00", deaf: true},
	api.JavaScript: {argv: [3]string{"node", "-e", loadJavaScript}, source: javascriptKernel + "\x00"},
	// Bash reads a script on standard input a line at a time. It hears of a signal once the
	// program that it waits for has ended: one that it has just begun to start does not get
	// the signal.
	api.Bash: {argv: [3]string{"bash", "-s", "--"}, source: bashKernel, each: eachBash, deaf: true},
}

// These read the source of a kernel up to a NUL, and run it.
const (
	loadPython = `import os, sys
buffer = b""
while b"\0" not in buffer:
    piece = os.read(0, 65536)
    if not piece:
        sys.exit(0)
    buffer += piece
source, _, buffer = buffer.partition(b"\0")
exec(compile(source, "<kernel>", "exec"))
`
	loadJavaScript = `const fs = require("fs");
let rest = Buffer.alloc(0);
while (!rest.includes(0)) {
  const piece = Buffer.alloc(65536);
  const n = fs.readSync(0, piece);
  if (n === 0) process.exit(0);
  rest = Buffer.concat([rest, piece.subarray(0, n)]);
}
const end = rest.indexOf(0);
require("vm").runInThisContext("(function (require, rest) {" + rest.subarray(0, end) + "\n})", { filename: "<kernel>" })(require, rest.subarray(end + 1));
`
)

// eachBash runs the code of a request in the shell itself. It stands in no function, in
// which the code could declare nothing for later runs, and in no loop, which the code
// could break. Nor is it in a function that the run ends: an interrupt has functions
// return, whatever they do.
const eachBash = `__sandbox_request; __sandbox_begin; source <(printf '%s\n' "$__sandbox_code") </dev/null; ` +
	"__sandbox_status=$?; __sandbox_ended=$__sandbox_running; __sandbox_running=; trap - DEBUG; shopt -u extdebug; __sandbox_end\n"

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
	argv := programs[o.Language].argv
	e, err := box.Exec(ctx, options.Exec{
		Cmd: append(argv[:], label+id),
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
		if ok && options.IsCodeContext(id) && p.argv[0] == e.Cmd[0] {
			return api.CodeContext{
				ID: id, BoxID: e.BoxID, ExecID: e.ID, Language: language,
				WorkingDir: e.WorkingDir, User: e.User, CreatedAt: e.CreatedAt,
			}, true
		}
	}
	return api.CodeContext{}, false
}
