package recipe

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// Step is an instruction with all its variables expanded.
type Step struct {
	Line int
	Text string // as it is written, on one line
	// Image is the image after the step. Of it, the step knows what an image says of
	// the commands that run in it, and neither its layers nor its name.
	Image api.Image
	// Directory is a directory that is made if it is missing; "" for none.
	Directory string
	Run       *Run  // nil unless it runs a command
	Copy      *Copy // nil unless it copies files
}

// Run is a command that a step runs.
type Run struct {
	Argv    []string
	Args    map[string]string // the values of ARG, which are variables of this command alone
	Network bool              // it has the network that the build gives to commands
}

// Copy is files that a step copies.
type Copy struct {
	From    Source
	Sources []string // patterns; relative to the context, and absolute in a stage or an image
	Dest    string   // an absolute path; with a "/" at its end it is a directory
	Owner   string   // USER[:GROUP], names or numbers; "" for who owns them in the source
	Mode    *int     // nil for the mode of the source
	Unpack  bool     // sources that are tars are unpacked
}

// Steps returns the steps of a stage that stands on an image. Errors:
// InvalidArgument, with fields.
func (plan *Plan) Steps(stage Stage, on api.Image) ([]Step, error) {
	p := document.Problems{Prefix: "the recipe can't be built: "}
	x := expander{
		plan: plan, lex: plan.recipe.lex(), p: &p, image: on, args: map[string]string{},
		shell: []string{"/bin/sh", "-c"},
	}
	x.image.Env, x.image.Labels = slices.Clone(on.Env), maps.Clone(on.Labels)
	var steps []Step
	for _, in := range plan.recipe.stages[stage.index].commands {
		x.field = lineOf(in.line)
		s := Step{Line: in.line, Text: in.text}
		x.step(in.command, &s)
		s.Image = x.image
		steps = append(steps, s)
	}
	return steps, p.Err(fault.InvalidArgument)
}

// expander turns the instructions of a stage into steps, one behind the other.
type expander struct {
	plan  *Plan
	lex   *shell.Lex
	p     *document.Problems
	field string // the line of the instruction
	image api.Image
	args  map[string]string // that the stage has declared and that have a value
	shell []string
	cmd   bool // the stage has a CMD of its own
}

// step expands one instruction into s.
func (x *expander) step(c instructions.Command, s *Step) {
	switch c := c.(type) {
	case *instructions.EnvCommand:
		x.env(c)
	case *instructions.ArgCommand:
		x.declare(c)
	case *instructions.LabelCommand:
		x.label(c)
	case *instructions.WorkdirCommand:
		x.image.WorkingDir = x.absolute(x.word(c.Path))
		s.Directory = x.image.WorkingDir
	case *instructions.UserCommand:
		x.image.User = x.word(c.User)
		x.p.When(x.image.User == "", x.field, "empty", "has a USER that comes to nothing")
	case *instructions.HealthCheckCommand:
		x.image.HealthCheck = x.health(c)
	case *instructions.StopSignalCommand:
		x.image.StopSignal = x.word(c.Signal)
	case *instructions.ExposeCommand:
		x.expose(c)
	case *instructions.ShellCommand:
		x.shell = slices.Clone(c.Shell)
	case *instructions.CmdCommand:
		x.image.Cmd, x.cmd = x.argv(c.ShellDependantCmdLine), true
	case *instructions.EntrypointCommand:
		x.image.Entrypoint = x.argv(c.ShellDependantCmdLine)
		if !x.cmd { // that of the image below belongs to its own entrypoint
			x.image.Cmd = nil
		}
	case *instructions.RunCommand:
		s.Run = x.run(c)
	case *instructions.CopyCommand:
		s.Copy = x.copy(c.SourcesAndDest, c.Chown, c.Chmod)
		x.from(c, s.Copy)
	case *instructions.AddCommand:
		s.Copy = x.copy(c.SourcesAndDest, c.Chown, c.Chmod)
		s.Copy.Unpack = true
		for _, source := range s.Copy.Sources {
			x.p.When(remote(source), x.field, "subset", "adds %.100q: only files of the context can be added; fetch it with RUN", source)
		}
	default:
		x.p.When(true, x.field, "subset", "has %s, which is not in the subset", strings.ToUpper(c.Name()))
	}
}

// variables returns what words are expanded with: ENV counts before ARG.
func (x *expander) variables() map[string]string {
	all := maps.Clone(x.args)
	for _, pair := range x.image.Env {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// word expands a word. A failure is noted.
func (x *expander) word(word string) string {
	return x.with(word, x.variables())
}

func (x *expander) with(word string, env map[string]string) string {
	expanded, err := expand(x.lex, word, env)
	x.p.When(err != nil, x.field, "expand", "%v", err)
	return expanded
}

// env sets variables. All of one instruction are expanded with those before it.
func (x *expander) env(c *instructions.EnvCommand) {
	env := x.variables()
	for _, pair := range c.Env {
		name := x.with(pair.Key, env)
		x.p.When(name == "" || strings.Contains(name, "="), x.field, "name", "has %.100q, which can't be the name of a variable", name)
		value := name + "=" + x.with(pair.Value, env)
		at := slices.IndexFunc(x.image.Env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		if at < 0 {
			x.image.Env = append(x.image.Env[:len(x.image.Env):len(x.image.Env)], value)
			continue
		}
		x.image.Env = slices.Clone(x.image.Env)
		x.image.Env[at] = value
	}
}

// declare declares arguments.
func (x *expander) declare(c *instructions.ArgCommand) {
	for _, arg := range c.Args {
		value, set := x.plan.value(arg, x.lex, x.variables(), x.p)
		if !set {
			value, set = x.plan.global[arg.Key]
		}
		if set {
			x.args[arg.Key] = value
		}
	}
}

func (x *expander) label(c *instructions.LabelCommand) {
	x.image.Labels = maps.Clone(x.image.Labels)
	if x.image.Labels == nil {
		x.image.Labels = map[string]string{}
	}
	env := x.variables()
	for _, pair := range c.Labels {
		x.image.Labels[x.with(pair.Key, env)] = x.with(pair.Value, env)
	}
}

// expose notes ports, as 80/tcp.
func (x *expander) expose(c *instructions.ExposeCommand) {
	x.image.ExposedPorts = slices.Clone(x.image.ExposedPorts)
	for _, word := range c.Ports {
		for _, port := range strings.Fields(x.word(word)) {
			number, protocol, given := strings.Cut(port, "/")
			if !given {
				protocol = "tcp"
			}
			n, err := strconv.ParseUint(number, 10, 16)
			bad := err != nil || n == 0 || !slices.Contains([]string{"tcp", "udp"}, protocol)
			x.p.When(bad, x.field, "port", "exposes %.100q: want a port, or one with /tcp or /udp behind it", port)
			if port = fmt.Sprintf("%d/%s", n, protocol); !bad && !slices.Contains(x.image.ExposedPorts, port) {
				x.image.ExposedPorts = append(x.image.ExposedPorts, port)
			}
		}
	}
	slices.Sort(x.image.ExposedPorts)
}

// health returns the check of a HEALTHCHECK; one that says NONE hides that of the image
// below.
func (x *expander) health(c *instructions.HealthCheckCommand) *api.HealthCheck {
	h := c.Health
	return &api.HealthCheck{
		Test: slices.Clone(h.Test), IntervalMS: h.Interval.Milliseconds(), TimeoutMS: h.Timeout.Milliseconds(),
		StartPeriodMS: h.StartPeriod.Milliseconds(), StartIntervalMS: h.StartInterval.Milliseconds(), Retries: h.Retries,
	}
}

// absolute returns a path as the working directory completes it. A "/" at its end stays.
func (x *expander) absolute(name string) string {
	x.p.When(name == "", x.field, "empty", "has a path that comes to nothing")
	x.p.When(strings.ContainsRune(name, 0), x.field, "nul", "has a path with a NUL byte")
	clean := path.Clean("/" + name)
	if !path.IsAbs(name) {
		clean = path.Join("/", x.image.WorkingDir, name)
	}
	return clean
}

// argv returns the arguments of a command, with the shell before one in shell form.
func (x *expander) argv(c instructions.ShellDependantCmdLine) []string {
	x.p.When(len(c.Files) > 1, x.field, "subset", "has several here-documents, and may have one")
	if !c.PrependShell || len(c.CmdLine) == 0 {
		return slices.Clone(c.CmdLine)
	}
	script := strings.Join(c.CmdLine, " ")
	if len(c.Files) > 0 {
		script = x.inline(script, c.Files[0])
	}
	return append(slices.Clone(x.shell), script)
}

// inline returns the script of a command with a here-document: the document itself if
// that is all of the command, and else both, for the shell to put together.
func (x *expander) inline(script string, doc instructions.ShellInlineFile) string {
	if rest, ok := strings.CutPrefix(script, "<<"); ok && strings.Trim(rest, `-'"`) == doc.Name {
		x.p.When(strings.HasPrefix(doc.Data, "#!"), x.field, "subset", "has a script with a #! of its own, which is not in the subset")
		return doc.Data
	}
	return script + "\n" + doc.Data + doc.Name
}

// run returns the command of a RUN. Its text is for the shell of the box to expand.
func (x *expander) run(c *instructions.RunCommand) *Run {
	r := &Run{Argv: x.argv(c.ShellDependantCmdLine), Args: map[string]string{}, Network: true}
	x.p.When(len(r.Argv) == 0 || r.Argv[0] == "" || len(c.CmdLine) == 0, x.field, "empty", "has a RUN without a command")
	for name, value := range x.args {
		if !slices.ContainsFunc(x.image.Env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") }) {
			r.Args[name] = value
		}
	}
	switch mode := instructions.GetNetwork(c); mode {
	case "", instructions.NetworkDefault:
	case instructions.NetworkNone:
		r.Network = false
	default:
		x.p.When(true, x.field, "subset", "has RUN --network=%.50s: want none or default", mode)
	}
	return r
}

// copy expands what COPY and ADD share.
func (x *expander) copy(files instructions.SourcesAndDest, chown, chmod string) *Copy {
	env := x.variables()
	c := &Copy{From: context, Owner: x.with(chown, env)}
	for _, source := range files.SourcePaths {
		c.Sources = append(c.Sources, x.with(source, env))
	}
	dest := x.with(files.DestPath, env)
	c.Dest = x.absolute(dest)
	directory := strings.HasSuffix(dest, "/") || path.Base(dest) == "."
	x.p.When(!directory && len(c.Sources) > 1, x.field, "dest", `copies several files to %.200q: a directory is wanted, with a "/" at its end`, dest)
	if directory && c.Dest != "/" {
		c.Dest += "/"
	}
	var err error
	c.Mode, err = mode(x.with(chmod, env))
	x.p.When(err != nil, x.field, "mode", "has --chmod=%.100s: want an octal mode, as 0644", chmod)
	return c
}

// from sets where a COPY copies from.
func (x *expander) from(c *instructions.CopyCommand, to *Copy) {
	from, err := x.plan.recipe.copiesFrom(c)
	x.p.When(err != nil, x.field, "stage", "%v", err)
	if from == context {
		return
	}
	if from.Stage >= 0 {
		from.Stage = x.plan.places[from.Stage]
	}
	to.From = from
	for i, source := range to.Sources {
		to.Sources[i] = path.Join("/", source)
	}
}
