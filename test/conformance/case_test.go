package conformance_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// testCase is one case, as the package's comment shows it.
type testCase struct {
	Row, Name string
	On        []string
	Alone     bool // it looks at what other cases would change
	Do        []step
	file      string
}

// step is a verb with its arguments, and what shall come of it.
type step = object

// run runs the case on its surfaces, each beside all others unless it is alone.
func (c *testCase) run(t *testing.T, h *host) {
	for _, on := range c.On {
		t.Run(c.Row+"/"+c.Name+"/"+on, func(t *testing.T) {
			if !c.Alone {
				t.Parallel()
			}
			tb, settle := h.judgeOf(t, c)
			r := &running{TB: tb, host: h, on: on, marks: c.marks(), vars: map[string]string{
				"name": "n-" + strings.ToLower(rand.Text()[:12]), "ROOTFS": h.rootfs, "SHARE": h.share,
				"long": strings.Repeat("x", options.MaxCmdBytes), "mebibyte": strings.Repeat("x", 1<<20),
				"URL": h.url, "HOME": os.Getenv("HOME"),
			}}
			maps.Copy(r.vars, days())
			t.Cleanup(r.clean)
			t.Cleanup(func() { h.table.add(c.Row, on, !r.Failed()) })
			settle(func() {
				for i, s := range c.Do {
					r.step(i+1, s)
				}
			})
		})
	}
}

// running is a case on its way on one surface.
type running struct {
	testing.TB
	*host
	on      string
	marks   bool // see marking
	vars    map[string]string
	boxes   []string // to be removed
	driving *driver  // of a binding
}

// object is JSON.
type object = map[string]any

// result is what a verb gave.
type result struct {
	value object
	fail  *failure // nil for a success
	only  []string // members that the surface can tell; nil for all
}

// failure is how a surface tells one.
type failure struct {
	is   func(fault.Row) bool
	text string
}

// modifiers are the members of a step that are no verb.
var modifiers = []string{"want", "fails", "says", "save", "via"}

func (r *running) step(n int, s step) {
	r.Helper()
	var verbs []string
	for name := range s {
		if !slices.Contains(modifiers, name) {
			verbs = append(verbs, name)
		}
	}
	if len(verbs) != 1 {
		r.Fatalf("step %d has the verbs %v", n, verbs)
	}
	on := r.on
	if via, ok := s["via"].(string); ok {
		on = via
	}
	do := surfaces[on][verbs[0]]
	if do == nil {
		r.Fatalf("step %d: %s has no verb %s", n, on, verbs[0])
	}
	what := fmt.Sprintf("step %d, %s on %s", n, verbs[0], on)
	args, ok := r.fill(s[verbs[0]]).(object)
	if !ok {
		args = object{"box": r.fill(s[verbs[0]])}
	}
	got := do(r, args)
	if !r.judge(what, s, got) {
		return
	}
	if id, ok := got.value["id"].(string); ok && verbs[0] == "create" {
		r.vars["box"] = id
		r.boxes = append(r.boxes, id)
	}
	if id, ok := got.value["id"].(string); ok && verbs[0] == "start_exec" {
		r.vars["exec"] = id
	}
	saved, _ := s["save"].(object)
	for name, path := range saved {
		r.vars[name] = fmt.Sprint(at(got.value, path.(string)))
	}
}

// judge compares what came with what shall come.
func (r *running) judge(what string, s step, got result) bool {
	r.Helper()
	says, _ := r.fill(s["says"]).(string)
	if code, ok := s["fails"].(string); ok {
		if got.fail == nil {
			r.Fatalf("%s: got %s, want the failure %s", what, brief(got.value), code)
		}
		var kind fault.Kind
		must(r, kind.UnmarshalText([]byte(code)))
		if kind.String() != code || !got.fail.is(kind.Row()) {
			r.Errorf("%s: got %q, want the failure %s", what, got.fail.text, code)
		}
		if !matches(says, got.fail.text) {
			r.Errorf("%s: it says %q, which is not about %q", what, got.fail.text, says)
		}
		return false
	}
	if got.fail != nil {
		r.Fatalf("%s: %s", what, got.fail.text)
	}
	want, _ := s["want"].(object)
	compared := 0
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got.only != nil && !slices.Contains(got.only, path) {
			continue
		}
		compared++
		if v := at(got.value, path); !matches(r.fill(want[path]), v) {
			r.Errorf("%s: %s is %s, want %s; all of it: %s", what, path, brief(v), brief(want[path]), brief(got.value))
		}
	}
	if len(want) > 0 && compared == 0 {
		r.Errorf("%s: %s tells nothing of what is wanted", what, r.on)
	}
	return true
}

// fill replaces <name> in all strings of v.
func (r *running) fill(v any) any {
	switch v := v.(type) {
	case string:
		if m := plenty.FindStringSubmatch(v); m != nil {
			return many(m[1], m[2])
		}
		return placeholder.ReplaceAllStringFunc(v, func(s string) string {
			if value, ok := r.vars[s[1:len(s)-1]]; ok {
				return value
			}
			return s
		})
	case object:
		filled := object{}
		for name, item := range v {
			filled[name] = r.fill(item)
		}
		return filled
	case []any:
		filled := make([]any, len(v))
		for i, item := range v {
			filled[i] = r.fill(item)
		}
		return filled
	}
	return v
}

var placeholder = regexp.MustCompile(`<[A-Za-z_0-9]+>`)

var plenty = regexp.MustCompile(`^<([0-9]+) (volumes|ports|labels|env)>$`)

// many returns more of something than a person would write.
func many(number, what string) any {
	n, _ := strconv.Atoi(number)
	list, members := make([]any, n), object{}
	for i := range n {
		list[i] = object{"host_path": "/usr", "guest_path": fmt.Sprintf("/v%d", i)}
		if what == "ports" {
			list[i] = object{"guest_port": i + 1}
		}
		members[fmt.Sprintf("k%d", i)] = "v"
	}
	if what == "labels" || what == "env" {
		return members
	}
	return list
}

// clean removes the case's boxes.
func (r *running) clean() {
	for _, id := range r.boxes {
		if err := r.core.Remove(r.ctx, id, true); err != nil && !fault.Is(err, fault.BoxNotFound) {
			r.Error(err)
		}
	}
}
