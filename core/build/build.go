// Package build makes images of recipes. Each step that runs a command or copies files
// is a box of the image so far, in which that is done; the disk of the box then becomes
// one more layer. What a step has made is noted under the digest of all that it depends
// on, so that a build which comes to the same step takes it from there.
package build

import (
	"context"
	"fmt"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/build/recipe"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
)

// DefaultTimeout is how long the command of a step may take.
const DefaultTimeout = time.Hour

// Options say what is built, and how.
type Options struct {
	Recipe []byte
	// Context has the files that the recipe may copy. The caller closes it.
	Context *tree.Tree
	Name    string            // of the image; "" for one that is made of its id
	Target  string            // the stage that becomes the image; "" for the last one
	Args    map[string]string // the values for ARG
	NoCache bool              // every step is carried out
	// NoNetwork gives the commands of RUN no network, whatever the recipe says.
	NoNetwork bool
	Timeout   time.Duration // of the command of each RUN; 0 for DefaultTimeout
	CPUs      int           // of each box; 0 for the default of boxes
	MemoryMiB int           // the same
	Report    Reporter      // may be nil
}

// Reporter is told how a build comes along, by one goroutine at a time. What it returns
// from Output ends the build.
type Reporter interface {
	Pull(p api.ImageProgress)                     // of an image that the recipe stands on
	Step(s api.BuildStep)                         // once it begins, unless it was made before, and once it ends
	Output(step int, stderr bool, p []byte) error // of the command of a step; p is valid until it returns, and does not end inside a character
}

// Builder makes images of recipes. It is safe for concurrent use.
type Builder struct {
	Runtime *core.Runtime
	Images  *image.Store
}

// Build makes an image of a recipe. All of the recipe is read, and all images and files
// that it names are looked for, before anything runs. A build that fails or whose ctx
// ends leaves what its steps have made, for the next one, and no box. Errors:
// InvalidArgument (what is wrong with the recipe, line by line; the name), FileNotFound
// (a file to be copied), Image (a base image; a command that failed), Timeout (a command
// that took too long), TooLarge, Storage, those of [core.Runtime.Create], and what ended
// ctx.
func (b *Builder) Build(ctx context.Context, o Options) (api.Image, error) {
	if err := o.check(); err != nil {
		return api.Image{}, err
	}
	if o.Report == nil {
		o.Report = silent{}
	}
	read, err := recipe.Read(o.Recipe)
	if err != nil {
		return api.Image{}, err
	}
	plan, err := read.Plan(o.Target, o.Args)
	if err != nil {
		return api.Image{}, err
	}
	free, err := b.Images.Keep(ctx)
	if err != nil {
		return api.Image{}, err
	}
	defer free()
	w := &work{Builder: b, Options: o, plan: plan, lenders: map[recipe.Source]*core.Box{}}
	defer w.returnLenders(context.WithoutCancel(ctx))
	if err := w.prepare(ctx); err != nil {
		return api.Image{}, err
	}
	return w.run(ctx)
}

// check refuses options that no build can have.
func (o Options) check() error {
	if o.Timeout < 0 {
		return fault.New(fault.InvalidArgument, "the timeout is negative")
	}
	if o.Name != "" {
		if err := image.CheckName(o.Name); err != nil {
			return err
		}
	}
	return o.box(true).Check()
}

// box returns the options of the box of a step.
func (o Options) box(network bool) options.Box {
	b := options.Defaults()
	b.Image = recipe.Scratch // what its record shows unless the step stands on an image
	if o.CPUs != 0 {
		b.CPUs = o.CPUs
	}
	if o.MemoryMiB != 0 {
		b.MemoryMiB = o.MemoryMiB
	}
	if !network || o.NoNetwork {
		b.Network = options.NetworkNone
	}
	return b
}

// silent is a reporter that nobody listens to.
type silent struct{}

func (silent) Pull(api.ImageProgress)         {}
func (silent) Step(api.BuildStep)             {}
func (silent) Output(int, bool, []byte) error { return nil }

// work is one build.
type work struct {
	*Builder
	Options
	plan    *recipe.Plan
	stages  []*stage
	lent    map[recipe.Source]api.Image // images that are copied from
	lenders map[recipe.Source]*core.Box // boxes that files are copied from
	done    int                         // steps
}

// stage is a stage of the build.
type stage struct {
	recipe.Stage
	steps []recipe.Step
	image api.Image // so far
	made  []string  // directories that the next layer is to have
	depth int       // how many layers it comes to
}

// at says in which line a failure was.
func at(line int, text string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d: %s: %w", line, text, err)
}

// run carries the stages out, and names the image of the last one.
func (w *work) run(ctx context.Context) (api.Image, error) {
	var last api.Image
	for _, s := range w.stages {
		if err := w.stage(ctx, s); err != nil {
			return api.Image{}, err
		}
		last = s.image
	}
	last.Name = w.Name
	return w.Images.Commit(ctx, last)
}

// stage carries the steps of a stage out.
func (w *work) stage(ctx context.Context, s *stage) error {
	if s.Base.Stage >= 0 {
		s.image = w.stages[s.Base.Stage].image
	}
	w.tell(s.Line, s.Text, api.StepDone, 0)
	for i, step := range s.steps {
		if step.Directory != "" {
			s.made = append(s.made, step.Directory)
		}
		last := i == len(s.steps)-1
		if err := w.step(ctx, s, step, last); err != nil {
			return at(step.Line, step.Text, err)
		}
	}
	return nil
}

// step carries one step out. A directory that was asked for is made along with the next
// layer, or at the end of the stage.
func (w *work) step(ctx context.Context, s *stage, step recipe.Step, last bool) error {
	begun := time.Now()
	stage := api.StepDone
	if layered(step, len(s.made) > 0, last) {
		made, cached, err := w.layer(ctx, s, step)
		if err != nil {
			return err
		}
		if cached {
			stage = api.StepCached
		}
		s.image.Layers, s.image.CreatedAt, s.made = made.Layers, made.CreatedAt, nil
	}
	s.image = describe(s.image, step.Image)
	w.tell(step.Line, step.Text, stage, time.Since(begun))
	return nil
}

// layered tells whether a step makes a layer. made says that directories wait for one, and
// last that no step of the stage comes behind it.
func layered(step recipe.Step, made, last bool) bool {
	return step.Run != nil || step.Copy != nil || last && made
}

// describe returns an image as a step has left it, with what the step says of it.
func describe(img, says api.Image) api.Image {
	layers, made := img.Layers, img.CreatedAt
	img = says
	img.Layers, img.CreatedAt = layers, made
	return img
}

// tell reports that a step has ended.
func (w *work) tell(line int, text string, stage api.BuildStage, took time.Duration) {
	w.done++
	w.Report.Step(api.BuildStep{Step: w.done, Steps: w.plan.Len(), Line: line, Text: text, Stage: stage, MS: took.Milliseconds()})
}

// begin reports that a step begins.
func (w *work) begin(step recipe.Step) {
	w.Report.Step(api.BuildStep{Step: w.done + 1, Steps: w.plan.Len(), Line: step.Line, Text: step.Text, Stage: api.StepBegun})
}
