package recipe_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core/build/recipe"
	"sandbox/core/fault"
)

// problems returns what is wrong, "line 3: subset" for example.
func problems(err error) []string {
	f := fault.Of(err)
	if f == nil {
		return nil
	}
	var all []string
	for _, field := range f.Fields {
		all = append(all, field.Field+": "+field.Code)
	}
	if all == nil {
		return []string{f.Message}
	}
	return all
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"fine":               {"FROM a\nRUN true\nCOPY --chown=1:2 --chmod=0755 a b /c/\nLABEL a=b\nEXPOSE 80\nSHELL [\"/bin/bash\", \"-c\"]", nil},
		"arguments first":    {"ARG V=1\nFROM a:$V", nil},
		"unknown":            {"FROM a\nRUM true", []string{"line 2: unknown"}},
		"all at once":        {"FROM a\nRUM true\nVOLUME /a\nONBUILD RUN true\nMAINTAINER me", []string{"line 2: unknown", "line 3: subset", "line 4: subset", "line 5: subset"}},
		"mounts":             {"FROM a\nRUN --mount=type=cache,target=/c true", []string{"line 2: subset"}},
		"security":           {"FROM a\nRUN --security=insecure true", []string{"line 2: subset"}},
		"no flag":            {"FROM a\nRUN --moumt=a true", []string{"line 2: syntax"}},
		"a URL":              {"FROM a\nADD https://example.com/a /a\nADD git@example.com:a /b", []string{"line 2: subset", "line 3: subset"}},
		"flags of COPY":      {"FROM a\nCOPY --link a /a\nCOPY --chmod=u+x a /a\nCOPY --chmod=77777 a /a", []string{"line 2: subset", "line 3: subset", "line 4: subset"}},
		"a document of COPY": {"FROM a\nCOPY <<EOF /a\ntext\nEOF", []string{"line 2: subset"}},
		"no FROM":            {"RUN true", []string{"line 1: from", "the recipe: from"}},
		"nothing":            {"# nothing", []string{"the recipe can't be read: line 1: file with no instructions"}},
		"long lines":         {"FROM a\nRUN a \\\n  b \\\n  c\nRUM", []string{"line 5: unknown"}},
		"one too many":       {strings.Repeat("FROM a\n", recipe.MaxInstructions+1), []string{"the recipe has 1001 instructions and may have at most 1000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := recipe.Read([]byte(tt.text))
			if got := problems(err); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := recipe.Read(make([]byte, recipe.MaxSize+1)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("of one that is too large: %v", err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, target string
		args         map[string]string
		stages       []recipe.Source // of the stages, what they stand on
		want         string          // of the failure
	}{
		"one": {text: "FROM a", stages: []recipe.Source{{Stage: -1, Image: "a"}}},
		"only what is needed": {
			text:   "FROM a AS x\nFROM b AS y\nFROM x\nCOPY --from=0 /a /b",
			stages: []recipe.Source{{Stage: -1, Image: "a"}, {Stage: 0}},
		},
		"a target": {text: "FROM a AS x\nFROM b AS Y\nFROM x", target: "y", stages: []recipe.Source{{Stage: -1, Image: "b"}}},
		"a number": {text: "FROM a AS x\nFROM scratch\nFROM x", target: "1", stages: []recipe.Source{{Stage: -1, Image: recipe.Scratch}}},
		"an argument": {
			text: "ARG V=1\nARG W=$V.2\nFROM a:${W}-$X", args: map[string]string{"V": "3"},
			stages: []recipe.Source{{Stage: -1, Image: "a:3.2-"}},
		},
		"a later stage": {
			text:   "FROM a AS x\nCOPY --from=y /a /b\nFROM b AS y\nFROM x",
			stages: []recipe.Source{{Stage: -1, Image: "b"}, {Stage: -1, Image: "a"}, {Stage: 1}},
		},
		"a circle": {
			text: "FROM a AS x\nCOPY --from=y /a /b\nFROM b AS y\nCOPY --from=x /a /b",
			want: "stage y needs stage x (line 4), stage x needs stage y (line 2)",
		},
		"itself":          {text: "FROM a AS x\nCOPY --from=x /a /b", want: "stage x needs stage x (line 2)"},
		"no stage":        {text: "FROM a\nCOPY --from=3 /a /b", want: "line 2 copies from stage 3, and the recipe has stages 0 to 0"},
		"no files":        {text: "FROM a\nCOPY --from=scratch /a /b", want: "line 2 copies from scratch"},
		"no target":       {text: "FROM a", target: "b", want: `target is "b"`},
		"no argument":     {text: "FROM a\nARG B", args: map[string]string{"A": "1"}, want: `build_arg has "A"`},
		"no value":        {text: "ARG V\nFROM $V", want: "line 2 has a FROM"},
		"no such word":    {text: "ARG V\nFROM ${V:?missing}", want: "V: missing"},
		"another machine": {text: "FROM --platform=plan9/mips a", want: "line 1 is for the platform"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := recipe.Read([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := r.Plan(tt.target, tt.args)
			if tt.want != "" {
				if !fault.Is(err, fault.InvalidArgument) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var stages []recipe.Source
			for _, s := range plan.Stages {
				stages = append(stages, s.Base)
			}
			if !slices.Equal(stages, tt.stages) {
				t.Errorf("got %v, want %v", stages, tt.stages)
			}
		})
	}
}

// steps returns the steps of a recipe of one stage on an image.
func steps(t *testing.T, text string, on api.Image, args map[string]string) ([]recipe.Step, error) {
	t.Helper()
	r, err := recipe.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := r.Plan("", args)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Steps(plan.Stages[len(plan.Stages)-1], on)
}

const everything = `ARG VERSION=1
FROM base
ARG VERSION
ARG OWN=$VERSION.5 OTHER
ENV PATH=/opt/$OWN:$PATH GREETING="hello $OWN" LATER=$GREETING
WORKDIR /srv
WORKDIR app
COPY ["a", "b c", "$VERSION/"]
ADD --chown=$OWN x.tar ./
RUN echo $GREETING
RUN ["/bin/echo", "$GREETING"]
RUN --network=none <<EOF
one
two
EOF
USER ${NOBODY:-1000}
LABEL version=$VERSION "a b"='c d'
EXPOSE 80 $VERSION/udp
STOPSIGNAL SIGQUIT
HEALTHCHECK --interval=5s --retries=2 CMD true
ENTRYPOINT ["/bin/app"]
SHELL ["/bin/bash", "-c"]
CMD run it
`

func TestSteps(t *testing.T) {
	t.Parallel()
	got, err := steps(t, everything, api.Image{Env: []string{"PATH=/bin"}, User: "root", Cmd: []string{"sh"}}, map[string]string{"VERSION": "2"})
	if err != nil {
		t.Fatal(err)
	}
	last := got[len(got)-1].Image
	context := recipe.Source{Stage: -1}
	for what, pair := range map[string][2]any{
		"env":        {last.Env, []string{"PATH=/opt/2.5:/bin", "GREETING=hello 2.5", "LATER="}},
		"directory":  {last.WorkingDir, "/srv/app"},
		"made":       {got[4].Directory, "/srv/app"},
		"copy":       {got[5].Copy, recipe.Copy{From: context, Sources: []string{"a", "b c"}, Dest: "/srv/app/2/"}},
		"add":        {got[6].Copy, recipe.Copy{From: context, Sources: []string{"x.tar"}, Dest: "/srv/app/", Owner: "2.5", Unpack: true}},
		"shell form": {got[7].Run, recipe.Run{Argv: []string{"/bin/sh", "-c", "echo $GREETING"}, Args: map[string]string{"VERSION": "2", "OWN": "2.5"}, Network: true}},
		"exec form":  {got[8].Run.Argv, []string{"/bin/echo", "$GREETING"}},
		"document":   {got[9].Run.Argv, []string{"/bin/sh", "-c", "one\ntwo\n"}},
		"network":    {got[9].Run.Network, false},
		"user":       {last.User, "1000"},
		"labels":     {last.Labels, map[string]string{"version": "2", "a b": "c d"}},
		"ports":      {last.ExposedPorts, []string{"2/udp", "80/tcp"}},
		"signal":     {last.StopSignal, "SIGQUIT"},
		"health":     {last.HealthCheck, api.HealthCheck{Test: []string{"CMD-SHELL", "true"}, IntervalMS: 5000, Retries: 2}},
		"entrypoint": {last.Entrypoint, []string{"/bin/app"}},
		"cmd":        {last.Cmd, []string{"/bin/bash", "-c", "run it"}},
		"cmd before": {got[15].Image.Cmd, []string(nil)},
		"lines":      {[]int{got[0].Line, got[9].Line, got[10].Line}, []int{3, 12, 16}},
	} {
		got, _ := json.Marshal(pair[0])
		want, _ := json.Marshal(pair[1])
		if string(got) != string(want) {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
}

func TestStepsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"FROM a\nUSER $NOBODY":                   "line 2: empty",
		"FROM a\nEXPOSE 99999":                   "line 2: port",
		"FROM a\nARG M=u+x\nCOPY --chmod=$M a b": "line 3: mode",
		"FROM a\nARG U=http://a/b\nADD $U b":     "line 3: subset",
		"FROM a\nCOPY a b c":                     "line 2: dest",
		"FROM a\nRUN --network=host true":        "line 2: subset",
		"FROM a\nENV A=${B?no}":                  "line 2: expand",
		"FROM a\nRUN []":                         "line 2: empty",
	} {
		_, err := steps(t, text, api.Image{}, nil)
		if got := problems(err); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// FuzzRecipe wants every text to be read, or refused as the caller's fault, and a recipe
// that was read to be planned and expanded, or refused.
func FuzzRecipe(f *testing.F) {
	for _, text := range []string{
		everything, "FROM a AS b\nRUN true\nCOPY --from=b /a /b", "ARG A=1\nFROM scratch\nADD a b\nENV A=${B:-c} C='d'",
		"# escape=`\nFROM a\nRUN a `\n b", "FROM a\nLABEL a=${b#*} c=${d/e/f}\nEXPOSE 1-3", "FROM --platform=$A b\nWORKDIR $C\nUSER ${D?}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := recipe.Read(text)
		var plan *recipe.Plan
		if err == nil {
			plan, err = r.Plan("", nil)
		}
		if err == nil {
			for _, s := range plan.Stages {
				if _, failed := plan.Steps(s, api.Image{Env: []string{"PATH=/bin"}}); failed != nil {
					err = failed
				}
			}
		}
		if err != nil && !fault.Is(err, fault.InvalidArgument) && !fault.Is(err, fault.TooLarge) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
