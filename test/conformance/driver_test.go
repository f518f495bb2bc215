package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/core/fault"
)

// binding is a surface in another language: a driver program that speaks the
// protocol of DRIVERS.md.
type binding struct {
	name    string
	remote  bool     // against the daemon over TCP, with a key
	target  string   // of make, which builds the driver
	command []string // that starts it, at the top of the tree
}

// bindings are all of them.
var bindings = []binding{
	{"cpp", false, "conformance-cpp", []string{"build/conformance/cpp"}},
	{"cpp-remote", true, "conformance-cpp", []string{"build/conformance/cpp"}},
	{"python", false, "conformance-python", []string{"build/python/venv/bin/python", "bindings/python/conformance/driver.py"}},
	{"python-remote", true, "conformance-python", []string{"build/python/venv/bin/python", "bindings/python/conformance/driver.py"}},
	{"node", false, "conformance-node", []string{"node", "bindings/node/out/conformance/driver.js"}},
	{"node-remote", true, "conformance-node", []string{"node", "bindings/node/out/conformance/driver.js"}},
}

// expand replaces the words bindings and remotes with the surfaces they stand for.
func expand(on []string) (names []string) {
	for _, name := range on {
		switch name {
		case "bindings", "remotes":
			for _, b := range bindings {
				if b.remote == (name == "remotes") {
					names = append(names, b.name)
				}
			}
		default:
			names = append(names, name)
		}
	}
	return names
}

// driver is a driver that runs. It serves one case after another.
type driver struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	stderr  bytes.Buffer
	bound   *time.Timer // kills it when a case takes too long
}

// marking are the verbs after which a runtime is not as it was, or that tell what it has
// done before. A case with one of these has a driver that serves it alone.
var marking = []string{"close", "metrics", "shutdown"}

// marks tells whether the case has such a verb.
func (c *testCase) marks() bool {
	return slices.ContainsFunc(c.Do, func(s step) bool {
		return slices.ContainsFunc(marking, func(verb string) bool { return s[verb] != nil })
	})
}

// longest is how long a case may use a driver.
const longest = 2 * time.Minute

// drivers are those that wait for their next case, by their surfaces.
type drivers struct {
	mu      sync.Mutex
	waiting map[string][]*driver
}

// take returns a driver that waits, or nil.
func (d *drivers) take(surface string) *driver {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.waiting[surface]
	if len(list) == 0 {
		return nil
	}
	d.waiting[surface] = list[:len(list)-1]
	return list[len(list)-1]
}

// give has a driver wait for its next case.
func (d *drivers) give(surface string, waits *driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[string][]*driver{}
	}
	d.waiting[surface] = append(d.waiting[surface], waits)
}

// leave ends all drivers.
func (d *drivers) leave(t testing.TB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for surface, list := range d.waiting {
		for _, waits := range list {
			if err := waits.leave(); err != nil {
				t.Errorf("%s: %v", surface, err)
			}
		}
	}
}

// launch returns a driver for the case: one that waits, or a new one. It waits again
// after the case, unless that failed.
func (r *running) launch(b binding) *driver {
	r.Helper()
	var d *driver
	if !r.marks {
		d = r.drivers.take(b.name)
	}
	if d == nil {
		d = r.start(b)
	}
	d.bound = time.AfterFunc(longest, func() { _ = d.cmd.Process.Kill() })
	r.Cleanup(func() {
		if d.bound.Stop() && !r.marks && !r.Failed() {
			r.drivers.give(b.name, d)
		} else if err := d.leave(); err != nil {
			r.Error(err)
		}
	})
	return d
}

// start starts a driver and opens its runtime.
func (r *running) start(b binding) *driver {
	r.Helper()
	command := slices.Clone(b.command)
	if *rootless && strings.HasSuffix(command[0], "/python") {
		command[0] = "python3" // that of the environment may be in root's home
	}
	d := &driver{cmd: exec.Command(command[0], command[1:]...)} //nolint:gosec // of the table
	d.cmd.Dir = "../.."
	library, err := filepath.Abs("../../build/libsandbox.so")
	must(r, err)
	d.cmd.Env = append(os.Environ(), "SANDBOX_LIBRARY="+library)
	d.cmd.Stderr = &d.stderr
	d.in, err = d.cmd.StdinPipe()
	must(r, err)
	out, err := d.cmd.StdoutPipe()
	must(r, err)
	d.answers = json.NewDecoder(out)
	must(r, d.cmd.Start())
	how := object{}
	if b.remote {
		how = object{"url": r.url, "api_key": r.key}
	}
	if got := d.ask(r, "open", how); got.fail != nil {
		r.Errorf("the driver can't open a runtime: %s", got.fail.text)
		must(r, d.leave())
		r.FailNow()
	}
	return d
}

// leave ends the driver, which has nothing to complain about.
func (d *driver) leave() error {
	d.in.Close()
	err := d.cmd.Wait()
	if d.stderr.Len() > 0 {
		err = errors.Join(err, errors.New(d.stderr.String()))
	}
	if err != nil {
		return fmt.Errorf("the driver ended: %w", err)
	}
	return nil
}

// told is what a driver says of a failure.
type told struct {
	Code           int
	Class, Message string
}

// ask makes a driver do an operation.
func (d *driver) ask(r *running, op string, members object) result {
	r.Helper()
	operation := without(members)
	operation["op"] = op
	line, err := json.Marshal(operation)
	must(r, err)
	_, err = d.in.Write(append(line, '\n'))
	var answer struct {
		Result  any
		Failure *told
	}
	if err == nil {
		err = d.answers.Decode(&answer)
	}
	if err != nil {
		r.Fatalf("%s: the driver does not answer: %v", op, err)
	}
	if answer.Failure != nil {
		return answer.Failure.result(r)
	}
	value, isObject := answer.Result.(object)
	if !isObject {
		value = object{"": answer.Result}
	}
	return result{value: value}
}

// result holds a failure to its class, and makes it a result.
func (f told) result(r *running) result {
	r.Helper()
	if want := classes()[f.Code]; want == "" || class(f.Class) != want {
		r.Errorf("the failure %d, %q, is of the class %s", f.Code, f.Message, f.Class)
	}
	return result{fail: &failure{func(row fault.Row) bool { return row.C == f.Code }, f.Class + ": " + f.Message}}
}

// class returns what the name of an exception's class has in common in all
// languages.
func class(name string) string {
	return strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(name), "_", ""), "error")
}

// classes returns the classes of failures by their codes, as the header names them.
var classes = sync.OnceValue(func() map[int]string {
	header, _ := os.ReadFile("../../include/sandbox.h")
	enumeration, _, _ := strings.Cut(string(header), "} SandboxErrorCode;")
	all := map[int]string{}
	for _, m := range regexp.MustCompile(`SANDBOX_([A-Z_]+) = (\d+),?`).FindAllStringSubmatch(enumeration, -1) {
		code, _ := strconv.Atoi(m[2])
		all[code] = class(m[1])
	}
	return all
})

// named returns the binding of a surface.
func named(surface string) binding {
	return bindings[slices.IndexFunc(bindings, func(b binding) bool { return b.name == surface })]
}
