package code_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core/code"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

func TestJavaScript(t *testing.T) {
	t.Parallel()
	steps(t, api.JavaScript, []step{
		{code: "console.log('hi'); const x = 41; x + 1", stdout: "hi\n", results: "=42"},
		{code: "const x = 43; let y = x; class A {}", results: ""},
		{code: "class A { z = y }; new A()", results: "=A { z: 43 }"},
		{code: "undefined"},
		{code: "null", results: "=null"},
		{code: "await new Promise((done) => setTimeout(() => done('late'), 1))", results: "='late'"},
		{code: "[10n ** 30n, NaN, -0, Symbol('s')]", results: "=[ 1000000000000000000000000000000n, NaN, -0, Symbol(s) ]"},
		{code: "Symbol('s')", results: "=Symbol(s)"},
		{code: "throw new TypeError('bad')", err: "TypeError: bad", trace: "TypeError: bad\n    at code-9:1:7\n"},
		{code: "function f() { throw new Error('deep') }\nf()", err: "Error: deep", trace: "Error: deep\n    at f (code-10:1:22)\n    at code-10:2:1\n"},
		{code: "let z = ;", err: "SyntaxError: Unexpected token ';'", trace: "SyntaxError: Unexpected token ';'\n    at code-11:1:9\n"},
		{code: "throw 7", err: "Uncaught: 7"},
		{code: "await display('a', 'b'); console.log('between'); display('c'); undefined", stdout: "between\n", results: "'a';'b';'c'"},
		{code: "require('child_process').execSync('echo child; echo trouble >&2', {stdio: 'inherit'})", stdout: "child\n", stderr: "trouble\n", results: "=null"},
		{code: "require('fs').readFileSync(0).length", results: "=0"},
		{code: "process.stdout.end(); console.error('e')", stderr: "e\n"},
	})
}

func TestJavaScriptForms(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	got := run(t, c, box, options.Code{Language: api.JavaScript, Code: `
({a: [1, "\ud800"], [Symbol.for("Jupyter.display")]() {
  return {"text/plain": "rich", "text/html": "<b>", "image/png": new Uint8Array([1, 2]), "image/jpeg": "not base64", "application/x-own": {own: true}};
}})`})
	if len(got.results) != 1 || got.err != nil {
		t.Fatalf("%+v", got)
	}
	r := got.results[0]
	if *r.Text != "rich" || *r.HTML != "<b>" || *r.PNG != "AQI=" || r.JPEG != nil || string(r.JSON) != "{\"a\":[1,\"\ufffd\"]}" || string(r.Extra["application/x-own"]) != "{\"own\":true}" {
		t.Errorf("%+v", r)
	}
}

func TestBash(t *testing.T) {
	t.Parallel()
	steps(t, api.Bash, []step{
		{code: "echo hi; x=41; declare -A m=([a]=1); f() { echo in f; return 4; }; cd /tmp", stdout: "hi\n"},
		{code: "echo $((x + 1)) ${m[a]} $PWD", stdout: "42 1 /tmp\n"},
		{code: "f", stdout: "in f\n", err: "ExitCode: 4", trace: "exit code 4\n"},
		{code: "echo trouble >&2; (exit 3)", stderr: "trouble\n", err: "ExitCode: 3"},
		{code: "return 5; echo never", err: "ExitCode: 5"},
		{code: "for i in 1 2; do break 9; done; echo after; printf '\\xff\\xc3\\xa9'", stdout: "after\n\ufffd\u00e9"},
		{code: "read line; echo \"[$line] $?\"; cat", stdout: "[] 1\n"},
		{code: "sleep 1000 & echo started", stdout: "started\n"},
		{code: "kill %1; wait; set -u; echo \"$x\"", stdout: "41\n"},
		{code: "printf '%s\\n' $'\\x1e' '*'; x='a  b'; echo \"$x\"", stdout: "\x1e\n*\na  b\n"},
	})
	box, c := newBox(t), code.New()
	for _, source := range []string{"break", "continue", "if then", "exit_()", ")"} {
		got := run(t, c, box, options.Code{Code: source, Language: api.Bash})
		if got.end.Restarted {
			t.Errorf("%s: %+v", source, got.err)
		}
	}
	wantEnd(t, run(t, c, box, options.Code{Code: "exit 3", Language: api.Bash}), api.CodeLost, true, "ended with exit code 3")
}

// A program of the code may change the mode of the pipes that the kernel shares with it, and
// fill them: the kernel writes once they are read.
func TestBashPipes(t *testing.T) {
	t.Parallel()
	box, c, dir := newBox(t), code.New(), t.TempDir()
	waits := filepath.Join(dir, "waits")
	if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte("#!/bin/sh\n: >"+waits+"\nexec /bin/sleep \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range []string{"1", "2"} {
		r, err := c.Run(t.Context(), box, options.Code{Language: api.Bash, Code: "PATH=" + dir + `:$PATH; python3 -c "
import fcntl, os, select
fcntl.fcntl(` + descriptor + `, fcntl.F_SETFL, os.O_NONBLOCK)
while select.select([], [` + descriptor + `], [], 0.5)[1]:  # until nobody reads
    os.write(` + descriptor + `, b'x' * 4096)"`})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		boxes.Await(t, "the kernel to wait for the pipe "+descriptor, func() bool { return os.Remove(waits) == nil })
		wantEnd(t, finish(t, r), api.CodeSucceeded, false, "")
	}
	got := run(t, c, box, options.Code{Language: api.Bash, Code: "echo on; echo trouble >&2; (exit 3)"})
	wantEnd(t, got, api.CodeFailed, false, "ExitCode: 3")
	if got.stdout != "on\n" || got.stderr != "trouble\n" {
		t.Errorf("the next run printed %q and %q", got.stdout, got.stderr)
	}
}

// Variables of one run are seen in it alone, in every language.
func TestEnv(t *testing.T) {
	t.Parallel()
	for language, show := range map[api.Language]string{
		api.Python:     "import os; print(os.environ.get('HOME'), os.environ.get('OWN', ''))",
		api.JavaScript: "console.log(process.env.HOME, process.env.OWN ?? '')",
		api.Bash:       "echo \"$HOME ${OWN-}\"",
	} {
		box, c := newBox(t), code.New()
		before := run(t, c, box, options.Code{Code: show, Language: language}).stdout
		during := run(t, c, box, options.Code{Code: show, Language: language, Env: map[string]string{"HOME": "a=b\nc", "OWN": "own"}}).stdout
		after := run(t, c, box, options.Code{Code: show, Language: language}).stdout
		if before != after || during != "a=b\nc own\n" || strings.Contains(before, "own") {
			t.Errorf("%s: %q, %q, %q", language, before, during, after)
		}
	}
}
