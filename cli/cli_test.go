package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/test/leak"
	"sandbox/test/members"
)

func TestMain(m *testing.M) { leak.Main(m) }

// host is a home whose boxes are fake: their commands are host processes.
type host struct {
	t       *testing.T
	runtime func(owned bool) *core.Runtime
	target  []string // the flags that say where commands go
}

func newHost(t *testing.T) *host {
	engine := fake.NewEngine(t)
	images := fake.Images{"default": {Ref: "default", Layers: []string{t.TempDir()}}}
	return &host{t, func(owned bool) *core.Runtime {
		return core.New(core.Config{Engine: engine, Images: images, Owned: owned})
	}, []string{"--local"}}
}

// run runs a command line with the streams given.
func (h *host) run(ctx context.Context, std Stdio, args ...string) int {
	a := &app{Stdio: std, open: func(owned bool) (*local.Host, error) {
		return &local.Host{Runtime: h.runtime(owned)}, nil
	}}
	return a.run(ctx, slices.Concat(h.target, args))
}

// sandbox runs a command line with no input and returns its output and exit code.
func (h *host) sandbox(args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	return h.with(strings.NewReader(""), args...)
}

func (h *host) with(in io.Reader, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = h.run(context.Background(), Stdio{in, &out, &errs}, args...)
	return out.String(), errs.String(), code
}

// create makes a box and returns its id.
func (h *host) create(args ...string) string {
	h.t.Helper()
	out, errs, code := h.sandbox(append([]string{"create"}, args...)...)
	if code != 0 {
		h.t.Fatalf("create %q: exit %d: %s", args, code, errs)
	}
	return strings.TrimSuffix(out, "\n")
}

func TestCreatePrintsTheIDAlone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if id := h.create("-n", "a"); !regexp.MustCompile(`^box_[a-z2-7]{20}$`).MatchString(id) {
		t.Errorf("create printed %q", id)
	}
	if id := h.create("--rm"); id == "" {
		t.Error("create --rm printed nothing")
	}
	if out, _, _ := h.sandbox("ls", "-q"); strings.Count(out, "box_") != 2 {
		t.Errorf("ls -q = %q, want two boxes: --rm removes at the stop, not before", out)
	}
}

func TestFlagsReachTheBox(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir := t.TempDir()
	h.create("-n", "a", "--hostname", "db.local", "--cpus", "1", "-m", "64", "-e", "A=1", "-w", "/tmp", "-u", "nobody", "--network", "None", "--label", "k=v", "--rm", "--rootfs", dir)
	if rec, err := h.runtime(false).Find(t.Context(), "a"); err != nil || rec.Options.Hostname != "db.local" {
		t.Errorf("the host name of %+v, %v", rec.Options, err)
	}
	out, _, _ := h.sandbox("info", "a", "-o", "json")
	var got api.Box
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	members.Equal(t, "info", members.Of{
		"name": {got.Name, "a"}, "cpus": {got.CPUs, 1}, "memory": {got.MemoryMiB, 64}, "env": {got.Env["A"], "1"},
		"working directory": {got.WorkingDir, "/tmp"}, "network": {got.Network, "None"}, "labels": {got.Labels["k"], "v"},
		"auto_remove": {got.AutoRemove, true}, "rootfs": {got.RootfsPath, dir}, "image": {got.Image, nil},
	})
}

func TestLife(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	id := h.create("-n", "a")
	steps := []struct {
		args string
		code int
		out  string // a regular expression of all of it
	}{
		{"ls", 0, `ID +NAME +STATUS +IMAGE +CPUS +MEMORY +AGE +EXPIRES +HEALTH\n` + id + ` +a +running +default +2 +512 MiB +\ds +- +-\n`},
		{"ls -s stopped -q", 0, ``},
		{"info a", 0, `(?s)id +` + id + `\nname +a\nstatus +running\n.*`},
		{"start a", 6, ``},
		{"rm a", 6, ``},
		{"stop a nope", 5, `a\n`},
		{"stop a", 6, ``},
		{"ls -s stopped -q", 0, id + `\n`},
		{"ls -s running -o json", 0, `\{\n  "boxes": \[\]\n\}\n`},
		{"exec a -- true", 125, ``},
		{"start " + id[:9], 0, id[:9] + `\n`},
		{"rm -f a -o json", 0, `(?s)\{\n  "removed": \[\n +"` + id + `"\n.*`},
		{"rm a", 5, ``},
	}
	for _, step := range steps {
		out, errs, code := h.sandbox(strings.Fields(step.args)...)
		if code != step.code || !regexp.MustCompile(`^`+step.out+`$`).MatchString(out) {
			t.Errorf("%s: exit %d, out %q, err %q; want exit %d, out %q", step.args, code, out, errs, step.code, step.out)
		}
		if (code != 0) != strings.HasPrefix(errs, "sandbox: ") {
			t.Errorf("%s: exit %d and stderr %q", step.args, code, errs)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "a")
	for args, want := range map[string]int{
		"bogus":                    2,
		"ls extra":                 2,
		"ls -s frozen":             2,
		"ls -o yaml":               2,
		"info":                     7,
		"info a b":                 2,
		"create --cpus 0":          2,
		"create --cpus x":          2,
		"create -m 1":              2,
		"create --network Host":    2,
		"create -n box_a":          2,
		"create --rm --keep":       2,
		"create --rootfs /tmp img": 2,
		"create --rootfs /nope/x":  2,
		"create nope":              7,
		"create -n a":              6,
		"info box_nope":            5,
		"exec a":                   125,
		"exec --bogus a -- true":   125,
		"exec -d -i a -- true":     125,
		"exec nope -- true":        125,
		"exec a -- /nope/x":        127,
		"exec a -- /etc/passwd":    126,
		"run nope -- true":         125,
		"run default":              125,
		"run --timeout -1 x -- sh": 125,
		"exec a -- sh -c exit\t3":  3,
		"exec a sh -c exit\t4":     4,
		"exec a -- sh -c kill\t$$": 143,
		"run -- true":              125,
	} {
		var argv []string
		for _, arg := range strings.Fields(strings.ReplaceAll(args, "\t", "\x00")) {
			argv = append(argv, strings.ReplaceAll(arg, "\x00", " "))
		}
		if _, errs, code := h.sandbox(argv...); code != want {
			t.Errorf("%s: exit %d (%s), want %d", args, code, errs, want)
		}
	}
}

func TestFailureInJSON(t *testing.T) {
	t.Parallel()
	_, errs, code := newHost(t).sandbox("info", "nope", "-o", "json")
	var doc struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(errs), &doc); err != nil || doc.Error.Code != "box_not_found" || code != 5 {
		t.Errorf("exit %d, %q: %v", code, errs, err)
	}
}

func TestFailureNamesTheNextStep(t *testing.T) {
	t.Parallel()
	_, errs, _ := newHost(t).sandbox("rm", "x", "y")
	want := "sandbox: no box \"x\"\nsandbox: no box \"y\"\n  'sandbox ls' lists the boxes\n"
	if errs != want {
		t.Errorf("stderr = %q, want %q", errs, want)
	}
}

func TestExitCodesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	out, _, _ := newHost(t).sandbox("help", "exit-codes")
	for _, row := range fault.Table() {
		if row.Exit < exitOwn && !strings.Contains(out, row.Code+": "+row.Class) {
			t.Errorf("help exit-codes lacks %s", row.Code)
		}
	}
}

func TestHelpOfEveryVerb(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, verb := range []string{"run", "create", "ls", "info", "start", "stop", "rm", "exec", "images", "doctor", "version", "completion"} {
		if out, errs, code := h.sandbox(verb, "--help"); code != 0 || !strings.Contains(out, "sandbox "+verb) || errs != "" {
			t.Errorf("%s --help: exit %d, %q, %q", verb, code, out, errs)
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "up")
	h.create("-n", "down")
	if _, errs, code := h.sandbox("stop", "-t", "0", "down"); code != 0 {
		t.Fatal(errs)
	}
	for line, want := range map[string]string{
		"exec ":      "up",
		"stop up ":   "up",
		"start ":     "down",
		"info ":      "down up",
		"info up ":   "",
		"rm u":       "down up", // the shell picks what begins so
		"cp ":        "up:",
		"logs ":      "count down query search up", // its verbs, too
		"attach ":    "up",
		"exec nope ": "",
	} {
		args := strings.Split(line, " ")
		out, _, code := h.sandbox(append([]string{"__complete"}, args...)...)
		var got []string
		for _, line := range strings.Split(out, "\n") {
			if name, _, ok := strings.Cut(line, "\t"); ok {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if code != 0 || strings.Join(got, " ") != want {
			t.Errorf("%q: exit %d, %q, want %q", line, code, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, errs, code := h.sandbox("completion", shell); code != 0 || errs != "" || !strings.Contains(out, "__complete") {
			t.Errorf("completion %s: exit %d, %q", shell, code, errs)
		}
	}
}

// TestCreateOfABriefBox wants a create that worked to print its box, although it
// has gone by then.
func TestCreateOfABriefBox(t *testing.T) {
	t.Parallel()
	engine := fake.Brief{Engine: fake.NewEngine(t)}
	images := fake.Images{"default": {Ref: "default", Layers: []string{t.TempDir()}}}
	h := &host{t, func(owned bool) *core.Runtime {
		return core.New(core.Config{Engine: engine, Images: images, Owned: owned})
	}, []string{"--local"}}
	var got api.Box
	out, errs, code := h.sandbox("create", "-n", "brief", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || *got.Name != "brief" || got.Status != api.Running {
		t.Errorf("exit %d, %q, %q, %v", code, out, errs, err)
	}
}
