package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandbox/api"
)

func TestAmountsOfMemory(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]mebibytes{
		"64": 64, "512m": 512, "512M": 512, "512MiB": 512, "1g": 1024, "2GB": 2048, "1t": 1 << 20,
		"": -1, "m": -1, "x": -1, "1.5g": -1, "512k": -1, "1b": -1, "1mm": -1, "99999999g": -1, "1 g": -1, "99999999999999999999": -1,
	} {
		got := mebibytes(-1)
		if err := got.Set(arg); got != want || (err == nil) != (want >= 0) {
			t.Errorf("-m %q is %d, %v; want %d", arg, got, err, want)
		}
	}
}

// TestFlagsAreRefusedInWords: no message speaks of Go's functions.
func TestFlagsAreRefusedInWords(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for args, want := range map[string]string{
		"create --cpus 0.5":                  `--cpus "0.5": want a whole number: a box has whole CPUs`,
		"create --disk x":                    `--disk "x": want a whole number`,
		"create --rm=maybe":                  `--rm "maybe": want true or false`,
		"create --disk 99999999999999999999": `--disk "99999999999999999999": want a smaller number`,
		"create -m lots":                     `"lots" is not an amount of memory`,
		"stop -t x a":                        `"x" is not a number of seconds`,
		"logs search --limit x":              `--limit "x": want a whole number`,
		"serve --stop-after x":               "unknown flag",
	} {
		_, errs, code := h.sandbox(strings.Fields(args)...)
		if code != 2 || !strings.Contains(errs, want) || strings.Contains(errs, "strconv") || strings.Contains(errs, "parsing") {
			t.Errorf("%s: exit %d, %q; want %q", args, code, errs, want)
		}
	}
}

func TestDockersWords(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for word := range dockerWords {
		_, errs, code := h.sandbox(word, "x")
		if code != 2 || !strings.Contains(errs, "; use ") || strings.Contains(errs, "did you mean") {
			t.Errorf("%s: exit %d, %q", word, code, errs)
		}
	}
	if _, errs, code := h.sandbox("ps"); code != 2 || !strings.Contains(errs, "'sandbox ls' lists the boxes") {
		t.Errorf("ps: exit %d, %q", code, errs)
	}
	h.create("-n", "web")
	if _, errs, _ := h.sandbox("rm", "web"); !strings.Contains(errs, "'sandbox rm -f'") {
		t.Errorf("rm of a running box: %q", errs)
	}
}

// TestDockersWordsAreNotOurs: a word that is a verb of ours would never be reached.
func TestDockersWordsAreNotOurs(t *testing.T) {
	t.Parallel()
	for _, verb := range (&app{}).root().Commands() {
		for _, name := range append(verb.Aliases, verb.Name()) {
			if ours, ok := dockerWords[name]; ok {
				t.Errorf("%s is a verb and a word of docker's: %s", name, ours)
			}
		}
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "one", "--label", "team=a")
	h.create("-n", "two", "--label", "team=b")
	h.sandbox("stop", "two")
	for args, want := range map[string]string{
		"--format {{.Name}}":                                            "two\none\n",
		"-a --format {{.Names}}\\t{{.Image}}":                           "two\tdefault\none\tdefault\n",
		"--format {{.Name}} --filter status=running":                    "one\n",
		"--format {{.Name}} --filter name=w":                            "two\n",
		"--format {{.Name}} --filter label=team":                        "two\none\n",
		"--format {{.Name}} --filter label=team=a":                      "one\n",
		"--format {{.Labels.team}} --filter label=team --filter name=t": "b\n",
		"-q --filter label=nope":                                        "",
	} {
		if out, errs, code := h.sandbox(append([]string{"ls"}, strings.Fields(args)...)...); out != want || code != 0 {
			t.Errorf("ls %s: exit %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
	for _, args := range [][]string{{"--filter", "x"}, {"--filter", "age=1"}, {"--format", "{{"}, {"--format", "{{.Nope}}"}, {"-q", "--format", "x"}} {
		if _, errs, code := h.sandbox(append([]string{"ls"}, args...)...); code != 2 {
			t.Errorf("ls %q: exit %d, %q", args, code, errs)
		}
	}
}

func TestEnvFile(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	name := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(name, []byte("# a comment\n\nA=1 2\r\nB=file\nC==#\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := h.sandbox("run", "--env-file", name, "-e", "B=flag", "default", "--", "sh", "-c", `echo "$A,$B,$C"`)
	if out != "1 2,flag,=#\n" || code != 0 {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if _, errs, code := h.sandbox("create", "--env-file", name+"x"); code != 2 || !strings.Contains(errs, "--env-file") {
		t.Errorf("a file that is not there: exit %d, %q", code, errs)
	}
}

// TestEnvOfOurs takes the value of a KEY that stands alone from our own environment.
func TestEnvOfOurs(t *testing.T) { // not parallel: it sets the environment
	t.Setenv("OURS", "1 = 2")
	t.Setenv("EMPTY", "")
	h := newHost(t)
	name := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(name, []byte("OURS\nNOWHERE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.create("-n", "a", "-e", "OURS", "-e", "NOWHERE")
	const script = `echo "$OURS,${EMPTY-none},${NOWHERE-none}"`
	for args, want := range map[string]string{
		"exec a":                              "1 = 2,none,none\n",
		"exec -e OURS=3 -e EMPTY a":           "3,,none\n",
		"run -e OURS -e EMPTY default":        "1 = 2,,none\n",
		"run --env-file " + name + " default": "1 = 2,none,none\n",
		"run -e NOWHERE default":              ",none,none\n",
	} {
		if out, errs, code := h.sandbox(append(strings.Fields(args), "--", "sh", "-c", script)...); out != want || code != 0 {
			t.Errorf("%s: exit %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
	if _, errs, code := h.sandbox("exec", "-e", "=x", "a", "--", "true"); code != 125 || !strings.Contains(errs, "KEY=VALUE") {
		t.Errorf("no key: exit %d, %q", code, errs)
	}
}

func TestTerminalWithoutOne(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "a")
	r, w, err := os.Pipe() // input that never ends
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, args := range [][]string{{"exec", "-it", "a", "--", "cat"}, {"run", "-it", "default", "--", "cat"}} {
		var errs bytes.Buffer
		code := h.run(context.Background(), Stdio{r, io.Discard, &errs}, args...)
		if code != 125 || !strings.Contains(errs.String(), "the input device is not a TTY") {
			t.Errorf("%q: exit %d, %q", args, code, errs.String())
		}
	}
}

func TestRunDetached(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	id, errs, code := h.sandbox("run", "-d", "-n", "a", "default", "--", "sleep", "600")
	id = strings.TrimSpace(id)
	if code != 0 || !regexp.MustCompile(`^box_[a-z2-7]{20}$`).MatchString(id) {
		t.Fatalf("run -d: exit %d, %q, %q", code, id, errs)
	}
	exec := h.onlyExec(id)
	if out, errs, code := h.sandbox("kill", id, exec.ID); code != 0 {
		t.Errorf("kill: exit %d, %q, %q", code, out, errs)
	}
	if out, _, _ := h.sandbox("ps", id); strings.Contains(out, exec.ID) {
		t.Errorf("ps after kill: %q", out)
	}
	if out, _, _ := h.sandbox("ps", "-a", id); !strings.Contains(out, exec.ID) {
		t.Errorf("ps -a after kill: %q", out)
	}
	h.sandbox("stop", "a")
	if out, _, _ := h.sandbox("ls", "-q"); out != "" {
		t.Errorf("the box of run -d stayed after its stop: %q", out)
	}
	if _, _, code := h.sandbox("kill", "-s", "NOPE", "a", exec.ID); code != 2 {
		t.Errorf("kill -s NOPE: exit %d", code)
	}
}

// onlyExec returns the one command that runs in a box.
func (h *host) onlyExec(ref string) api.Exec {
	h.t.Helper()
	out, errs, _ := h.sandbox("ps", ref, "-o", "json")
	var doc struct{ Execs []api.Exec }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Execs) != 1 {
		h.t.Fatalf("ps: %q, %q: %v", out, errs, err)
	}
	return doc.Execs[0]
}

func TestRestart(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.create("-n", "a")
	h.create("-n", "gone", "--rm")
	if out, errs, code := h.sandbox("restart", "a"); out != "a\n" || code != 0 {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	h.sandbox("stop", "a")
	if _, errs, code := h.sandbox("restart", "a"); code != 0 {
		t.Errorf("a stopped one: exit %d, %q", code, errs)
	}
	if _, errs, code := h.sandbox("restart", "gone"); code != 6 {
		t.Errorf("one with --rm: exit %d, %q", code, errs)
	}
	if out, _, _ := h.sandbox("ls", "-q", "-s", "running"); strings.Count(out, "box_") != 2 {
		t.Errorf("running: %q", out)
	}
}
