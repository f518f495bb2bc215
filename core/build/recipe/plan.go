package recipe

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// Scratch is the base of a stage that begins with no file at all.
const Scratch = "scratch"

// Source is where the files of a stage, or of a COPY --from, come from.
type Source struct {
	Stage int    // the index of a stage in the plan; -1 if it is none
	Image string // the reference of an image, or Scratch; "" for a stage, and for the context
}

// context is the source of a COPY without --from.
var context = Source{Stage: -1}

// Plan says what a build of a recipe does.
type Plan struct {
	// Stages are the stages that are needed, each behind those that it needs. The
	// last one becomes the image.
	Stages []Stage

	recipe *Recipe
	given  map[string]string // the arguments of the build
	global map[string]string // the values of ARG before the first FROM, and of the platform
	places map[int]int       // the index in Stages of a stage of the recipe
}

// Stage is a stage that is needed.
type Stage struct {
	Line int
	Text string // of its FROM
	Base Source
	// Images are the images that it copies from, by the lines of these instructions.
	Images map[int]string

	index int // in the recipe
}

// Plan finds out which stages the build of a target needs. target is the name or
// number of a stage, or "" for the last one; args are the values for ARG. Errors:
// InvalidArgument, with fields: a stage is missing or needs itself, or no ARG
// declares an argument.
func (r *Recipe) Plan(target string, args map[string]string) (*Plan, error) {
	var p document.Problems
	plan := &Plan{recipe: r, given: args, global: platform(), places: map[int]int{}}
	plan.declare(&p)
	if err := p.Err(fault.InvalidArgument); err != nil {
		return nil, err
	}
	p.Prefix = "the recipe can't be built: "
	needs := plan.needs(&p)
	last := len(r.stages) - 1
	if target != "" {
		var ok bool
		last, ok = r.stage(target, len(r.stages))
		p.When(!ok, "target", "stage", "is %.100q, and no stage has that name or number", target)
	}
	if err := p.Err(fault.InvalidArgument); err != nil {
		return nil, err
	}
	if err := plan.order(last, needs, nil); err != nil {
		return nil, err
	}
	return plan, nil
}

// platform returns the arguments that every build has.
func platform() map[string]string {
	all := map[string]string{}
	for _, whose := range []string{"TARGET", "BUILD"} {
		all[whose+"PLATFORM"], all[whose+"OS"], all[whose+"ARCH"], all[whose+"VARIANT"] = "linux/"+runtime.GOARCH, "linux", runtime.GOARCH, ""
	}
	return all
}

// declare sets the arguments before the first FROM, and refuses those that were given
// and that no ARG declares.
func (plan *Plan) declare(p *document.Problems) {
	declared := maps.Clone(plan.global)
	lex := plan.recipe.lex()
	for _, c := range plan.recipe.args {
		for _, arg := range c.Args {
			declared[arg.Key] = ""
			if value, set := plan.value(arg, lex, plan.global, p); set {
				plan.global[arg.Key] = value
			}
		}
	}
	for _, s := range plan.recipe.stages {
		for _, in := range s.commands {
			if c, ok := in.command.(*instructions.ArgCommand); ok {
				for _, arg := range c.Args {
					declared[arg.Key] = ""
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(plan.given)) {
		_, ok := declared[key]
		p.When(!ok, "build_arg", "unknown", "has %.100q, which no ARG of the recipe declares", key)
	}
}

// value returns the value of an ARG: the one that was given, or else its own.
func (plan *Plan) value(arg instructions.KeyValuePairOptional, lex *shell.Lex, env map[string]string, p *document.Problems) (string, bool) {
	if value, ok := plan.given[arg.Key]; ok {
		return value, true
	}
	if arg.Value == nil {
		return "", false
	}
	value, err := expand(lex, *arg.Value, env)
	p.When(err != nil, "ARG "+arg.Key, "expand", "can't be expanded: %v", err)
	return value, true
}

// need is a stage that another one needs.
type need struct{ stage, line int }

// needs returns what each stage of the recipe needs, and refuses what is missing.
func (plan *Plan) needs(p *document.Problems) [][]need {
	all := make([][]need, len(plan.recipe.stages))
	for i, s := range plan.recipe.stages {
		base, err := plan.base(i)
		p.When(err != nil, lineOf(s.from.line), "from", "%v", err)
		if base.Stage >= 0 {
			all[i] = append(all[i], need{base.Stage, s.from.line})
		}
		for _, in := range s.commands {
			from, err := plan.recipe.copiesFrom(in.command)
			p.When(err != nil, lineOf(in.line), "stage", "%v", err)
			if from.Stage >= 0 {
				all[i] = append(all[i], need{from.Stage, in.line})
			}
		}
	}
	return all
}

// base returns what a stage stands on. The stage of a Source is its index in the recipe.
func (plan *Plan) base(i int) (Source, error) {
	s := plan.recipe.stages[i]
	lex := plan.recipe.lex()
	on, err := expand(lex, s.platform, plan.global)
	if err == nil && on != "" && on != plan.global["TARGETPLATFORM"] {
		err = fault.New(fault.InvalidArgument, "is for the platform %.100q, and this machine is %s", on, plan.global["TARGETPLATFORM"])
	}
	if err != nil {
		return context, err
	}
	name, err := expand(lex, s.base, plan.global)
	switch {
	case err != nil:
		return context, err
	case name == "":
		return context, fault.New(fault.InvalidArgument, "has a FROM of %.100q, which comes to nothing: give the ARG a value", s.base)
	case name == Scratch:
		return Source{-1, Scratch}, nil
	}
	if at, ok := plan.recipe.named(name, i); ok {
		return Source{Stage: at}, nil
	}
	return Source{-1, name}, nil
}

// copiesFrom returns what an instruction copies from. The stage of a Source is its
// index in the recipe.
func (r *Recipe) copiesFrom(c instructions.Command) (Source, error) {
	from, ok := c.(*instructions.CopyCommand)
	if !ok || from.From == "" {
		return context, nil
	}
	if at, ok := r.stage(from.From, len(r.stages)); ok {
		return Source{Stage: at}, nil
	}
	if from.From == Scratch {
		return context, fault.New(fault.InvalidArgument, "copies from scratch, which has no files")
	}
	if _, err := strconv.Atoi(from.From); err == nil {
		return context, fault.New(fault.InvalidArgument, "copies from stage %.20s, and the recipe has stages 0 to %d", from.From, len(r.stages)-1)
	}
	return Source{-1, from.From}, nil
}

// stage returns the index of the stage with a name or number, among the first n.
func (r *Recipe) stage(name string, n int) (int, bool) {
	if at, ok := r.named(name, n); ok {
		return at, true
	}
	at, err := strconv.Atoi(name)
	return at, err == nil && at >= 0 && at < n
}

// named returns the index of the last stage with a name among the first n.
func (r *Recipe) named(name string, n int) (int, bool) {
	for i := n - 1; i >= 0; i-- {
		if r.stages[i].name != "" && strings.EqualFold(r.stages[i].name, name) {
			return i, true
		}
	}
	return 0, false
}

// order adds a stage of the recipe behind all that it needs. way has the stages that
// need it, the target first.
func (plan *Plan) order(i int, needs [][]need, way []int) error {
	if _, done := plan.places[i]; done {
		return nil
	}
	if slices.Contains(way, i) {
		return plan.cycle(append(way[slices.Index(way, i):], i), needs)
	}
	for _, n := range needs[i] {
		if err := plan.order(n.stage, needs, append(way, i)); err != nil {
			return err
		}
	}
	s := plan.recipe.stages[i]
	base, err := plan.base(i)
	if err != nil {
		return err
	}
	if base.Stage >= 0 {
		base.Stage = plan.places[base.Stage]
	}
	made := Stage{Line: s.from.line, Text: s.from.text, Base: base, Images: map[int]string{}, index: i}
	for _, in := range s.commands {
		if from, err := plan.recipe.copiesFrom(in.command); err == nil && from.Image != "" {
			made.Images[in.line] = from.Image
		}
	}
	plan.places[i] = len(plan.Stages)
	plan.Stages = append(plan.Stages, made)
	return nil
}

// cycle returns the failure of stages that need themselves.
func (plan *Plan) cycle(way []int, needs [][]need) error {
	var parts []string
	for i, at := range way[:len(way)-1] {
		on := needs[at][slices.IndexFunc(needs[at], func(n need) bool { return n.stage == way[i+1] })]
		parts = append(parts, "stage "+plan.title(at)+" needs stage "+plan.title(on.stage)+" ("+lineOf(on.line)+")")
	}
	return fault.New(fault.InvalidArgument, "the recipe can't be built: its stages need each other in a circle: %s", strings.Join(parts, ", "))
}

// title returns the name of a stage of the recipe, or its number.
func (plan *Plan) title(i int) string {
	if name := plan.recipe.stages[i].name; name != "" {
		return name
	}
	return strconv.Itoa(i)
}

// Len returns how many instructions the stages of the plan have, FROM included.
func (plan *Plan) Len() int {
	n := 0
	for _, s := range plan.Stages {
		n += 1 + len(plan.recipe.stages[s.index].commands)
	}
	return n
}

// expand expands the variables in a word.
func expand(lex *shell.Lex, word string, env map[string]string) (string, error) {
	result, err := lex.ProcessWordWithMatches(word, variables(env))
	if err != nil {
		return "", fault.New(fault.InvalidArgument, "has %.100q, which can't be expanded: %s", word, brief(err))
	}
	return result.Result, nil
}

// variables are what words are expanded with.
type variables map[string]string

// Get returns the value of a variable.
func (v variables) Get(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// Keys returns the names of all variables.
func (v variables) Keys() []string { return slices.Sorted(maps.Keys(v)) }
