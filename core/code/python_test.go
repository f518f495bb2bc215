package code_test

import (
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core/code"
	"sandbox/core/options"
)

func TestPython(t *testing.T) {
	t.Parallel()
	steps(t, api.Python, []step{
		{code: "print('hi'); x = 41\nx + 1", stdout: "hi\n", results: "=42"},
		{code: "x;"},
		{code: "_", results: "=42"},
		{code: "None"},
		{code: ""},
	}[:4])
	steps(t, api.Python, []step{
		{code: "import os, sys; os.system('echo child; echo trouble >&2')", stdout: "child\n", stderr: "trouble\n", results: "=0"},
		{code: "print('no end of line', end=''); print('e', file=sys.stderr)", stdout: "no end of line", stderr: "e\n"},
		{code: "os.write(1, b'\\xff\\xc3\\xa9'); print(chr(0xe9) * 3)", stdout: "\ufffd\u00e9\u00e9\u00e9\u00e9\n"},
		{code: "print(chr(0xd800))", stdout: "\\ud800\n"},
		{code: "chr(0xd800) + 'x'", results: "='\\ud800x'"},
		{code: "print('\\x1e' + 'a' * 32 + '0000.'); sys.stdout.flush()", stdout: "\x1e" + strings.Repeat("a", 32) + "0000.\n"},
		{code: "input()", err: "EOFError: EOF when reading a line", trace: "Traceback (most recent call last):\n  File \"<code 7>\", line 1, in <module>\n    input()\n"},
		{code: "sys.stdout.close(); sys.stderr = None"},
	})
	steps(t, api.Python, []step{
		{code: "1/0", err: "ZeroDivisionError: division by zero", trace: "Traceback (most recent call last):\n  File \"<code 1>\", line 1, in <module>\n    1/0\n"},
		{code: "def f():\n  raise ValueError('no')\n\ntry: f()\nexcept ValueError as e: raise KeyError(1) from e", err: "KeyError: 1", trace: "Traceback (most recent call last):\n"},
		{code: "x y", err: "SyntaxError: invalid syntax (<code 3>, line 1)", trace: "  File \"<code 3>\", line 1\n"},
		{code: "raise SystemExit(3)", err: "SystemExit: 3"},
		{code: "class E(Exception):\n  def __str__(self): 1/0\nraise E()", err: "E: ", trace: "E, whose text can't be made: ZeroDivisionError"},
		{code: "def deep(): deep()\ndeep()", err: "RecursionError: maximum recursion depth exceeded"},
		{code: "'fine'", results: "='fine'"},
	})
	steps(t, api.Python, []step{
		{code: "import asyncio\nawait asyncio.sleep(0.001)\nawait asyncio.sleep(0.001, 'slept')", results: "='slept'"},
		{code: "async def one(): return 1\nasyncio.run(one())", results: "=1"},
		{code: "async with asyncio.Lock(): print('held')", stdout: "held\n"},
		{code: "import os\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')", stdout: "child\nparent\n"},
		{code: "class A:\n  pass\nimport pickle; type(pickle.loads(pickle.dumps(A()))).__name__", results: "='A'"},
		{code: "display('a'); print('between'); display('b', 'c')", stdout: "between\n", results: "'a';'b';'c'"},
	})
}

// Values show themselves in all of their forms.
func TestPythonForms(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	got := run(t, c, box, options.Code{Code: `
class Rich:
    def __repr__(self): return "rich"
    def _repr_html_(self): return "<b>rich</b>"
    def _repr_markdown_(self): return "**rich**"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\x89PNG"
    def _repr_jpeg_(self): return "/9j/\n"
    def _repr_pdf_(self): return b"%PDF", {"pages": 1}
    def _repr_latex_(self): return "$x$"
    def _repr_json_(self): return {"a": [1, float("nan"), "\ud800"]}
    def _repr_javascript_(self): return "1"
    def _repr_mimebundle_(self, include, exclude): return {"application/x-own+json": {"own": True}}
Rich()`})
	if len(got.results) != 1 || got.err != nil {
		t.Fatalf("%+v", got)
	}
	r := got.results[0]
	for name, form := range map[string][2]string{
		"text": {*r.Text, "rich"}, "html": {*r.HTML, "<b>rich</b>"}, "markdown": {*r.Markdown, "**rich**"}, "svg": {*r.SVG, "<svg/>"},
		"png": {*r.PNG, "iVBORw=="}, "jpeg": {*r.JPEG, "/9j/"}, "pdf": {*r.PDF, "JVBERg=="}, "latex": {*r.LaTeX, "$x$"}, "javascript": {*r.JavaScript, "1"},
		"json": {string(r.JSON), "{\"a\":[1,null,\"\ufffd\"]}"}, "extra": {string(r.Extra["application/x-own+json"]), "{\"own\":true}"},
	} {
		if form[0] != form[1] {
			t.Errorf("%s is %q, want %q", name, form[0], form[1])
		}
	}
	for source, text := range map[string]string{
		"class B:\n  def __repr__(self): return 'b'\n  def _repr_html_(self): 1/0\nB()":                "=b",
		"class C:\n  def __repr__(self): 1/0\nC()":                                                     "=<C whose text can't be made: ZeroDivisionError>",
		"class D:\n  def __getattr__(self, name): return lambda **_: 'any'\nrepr(D())[:9]":             "='<__main__'",
		"display({'text/plain': 'raw', 'image/png': b'PNG'}, raw=True)":                                "raw",
		"class G:\n  def __repr__(self): return 'g'\n  def _repr_png_(self): return 'not base64'\nG()": "=g",
	} {
		if got := run(t, c, box, options.Code{Code: source}); strings.Join(got.texts(), ";") != text || got.err != nil {
			t.Errorf("%s: %q, %+v", source, got.texts(), got.err)
		}
	}
	large := run(t, c, box, options.Code{Code: "class F:\n  def _repr_html_(self): return 'x' * (9 << 20)\nF()"})
	if len(large.results) != 0 || large.err == nil || large.err.Name != "ValueError" {
		t.Errorf("a result that is too large: %+v", large.err)
	}
}

// A run that was interrupted is told as that, also if a second SIGINT comes while the kernel
// shows what its code has drawn.
func TestPythonInterruptedTwice(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	got := run(t, c, box, options.Code{Code: `
import os, signal, sys, types
def get_fignums():
    os.kill(os.getpid(), signal.SIGINT)
    return []
sys.modules["matplotlib.pyplot"] = types.SimpleNamespace(get_fignums=get_fignums)
os.kill(os.getpid(), signal.SIGINT)
while True: pass`})
	wantEnd(t, got, api.CodeInterrupted, false, "KeyboardInterrupt")
	wantEnd(t, run(t, c, box, options.Code{Code: "del sys.modules['matplotlib.pyplot']"}), api.CodeSucceeded, false, "")
}

// A thread that a run has left may show something in any moment: it comes to a run that has
// begun, or is dropped. Here it does as each run begins and ends.
func TestPythonThreads(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	run(t, c, box, options.Code{Code: `
import os, threading
write = os.write
def wrapped(fd, piece):
    n = write(fd, piece)
    if piece.endswith(b"0000."):  # the beginning or the end of a run on standard error
        other = threading.Thread(target=display, args=(1,))
        other.start()
        other.join()
    return n
os.write = wrapped`})
	for i := range 3 {
		got := run(t, c, box, options.Code{Code: "2"})
		wantEnd(t, got, api.CodeSucceeded, false, "")
		if strings.Join(got.texts(), ";") != "=2;1" || got.start.ExecutionCount != i+2 {
			t.Errorf("a run beside a thread: %q, %+v", got.texts(), got.start)
		}
	}
}
