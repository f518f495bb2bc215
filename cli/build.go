package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/build/recipe"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
)

func (a *app) buildCmd() *cobra.Command {
	var o backend.BuildOptions
	var file string
	var args []string
	cmd := &cobra.Command{
		Use:   "build [-f FILE] [-t NAME] [--build-arg KEY=VALUE] [CONTEXT]",
		Short: "Make an image of a recipe, the common subset of Dockerfile",
		Long: `Make an image of a recipe: FROM, RUN, COPY, ADD of local files, ENV, ARG, WORKDIR,
USER, LABEL, EXPOSE, ENTRYPOINT, CMD, SHELL, HEALTHCHECK and STOPSIGNAL, with several
stages. What is not in the subset is named with its line before anything runs. Each
RUN runs in a box; what a step has made is used again as long as nothing has changed
that it depends on.

CONTEXT is the directory whose files can be copied, by default the present one; its
.dockerignore says which are left out. Without -f the recipe is its Dockerfile; with
-f - it is read from standard input.`,
		Example: `  sandbox build -t team/app:1 .
  sandbox build -f app.recipe --build-arg VERSION=2 --network None src`,
		Args: cobra.MaximumNArgs(1),
	}
	fl := cmd.Flags()
	fl.StringVarP(&file, "file", "f", "", "the recipe (default CONTEXT/Dockerfile; - is standard input)")
	fl.StringVarP(&o.Name, "tag", "t", "", "name of the image (default: made of its id)")
	fl.StringVar(&o.Target, "target", "", "the stage that becomes the image (default the last one)")
	fl.StringArrayVar(&args, "build-arg", nil, "a value for an ARG: `KEY=VALUE` (repeatable)")
	fl.BoolVar(&o.NoCache, "no-cache", false, "carry out every step")
	network := fl.String("network", "Isolated", "what RUN has: Isolated or None")
	fl.DurationVar(&o.Timeout, "timeout", time.Hour, "how long each RUN may take")
	fl.IntVar(&o.CPUs, "cpus", 0, "number of CPUs of each box (default that of boxes)")
	fl.VarP((*mebibytes)(&o.MemoryMiB), "memory", "m", "memory of each box in MiB, or with a unit (default that of boxes)")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		var err error
		if o.Args, err = pairs("--build-arg", args); err != nil {
			return err
		}
		if o.NoNetwork, err = noNetwork(*network); err != nil {
			return err
		}
		return a.build(cmd.Context(), append(given, ".")[0], file, o)
	}
	return cmd
}

// noNetwork reads the network that a build gives to commands.
func noNetwork(word string) (bool, error) {
	switch strings.ToLower(word) {
	case "isolated":
		return false, nil
	case "none":
		return true, nil
	}
	return false, fault.New(fault.InvalidArgument, "--network %q: want Isolated or None", word)
}

// build builds an image of a recipe and a directory, and prints it.
func (a *app) build(ctx context.Context, dir, file string, o backend.BuildOptions) (err error) {
	if o.Recipe, err = a.recipe(dir, file); err != nil {
		return err
	}
	if _, err := recipe.Read(o.Recipe); err != nil { // before the context is looked through and sent
		return err
	}
	if o.Context, err = tree.Open(ctx, dir); err != nil {
		return err
	}
	defer func() { _ = o.Context.Close() }()
	shown := &buildMeter{out: a.Err, meter: newMeter(a.Err)}
	o.Report = shown
	return a.with(ctx, false, func(on backend.Boxes) error {
		img, err := on.BuildImage(ctx, o)
		shown.meter.clear()
		if err != nil {
			return err
		}
		return a.printMade(img)
	})
}

// recipe reads the recipe of a build.
func (a *app) recipe(dir, file string) ([]byte, error) {
	if file != "-" {
		return backend.ReadRecipe(dir, file)
	}
	text, err := io.ReadAll(io.LimitReader(a.In, recipe.MaxSize+1))
	return text, fault.Wrap(fault.InvalidArgument, err, "the recipe")
}

// buildMeter shows on standard error how a build comes along, in lines that stay.
type buildMeter struct {
	out   io.Writer
	meter *meter
}

// Pull shows the progress of a pull.
func (m *buildMeter) Pull(p api.ImageProgress) { m.meter.show(p) }

// Step prints a step that begins, or that had been made before or only changes what the
// image says, and how long one took.
func (m *buildMeter) Step(s api.BuildStep) {
	m.meter.clear()
	head := fmt.Sprintf("step %d/%d: %s", s.Step, s.Steps, printable(s.Text))
	switch {
	case s.Stage == api.StepCached:
		fmt.Fprintln(m.out, head, "(cached)")
	case s.Stage == api.StepBegun:
		fmt.Fprintln(m.out, head)
	case s.MS > 0:
		fmt.Fprintf(m.out, "step %d/%d: done in %.1f s\n", s.Step, s.Steps, float64(s.MS)/1000)
	default:
		fmt.Fprintln(m.out, head)
	}
}

// Output prints output of a command as it comes.
func (m *buildMeter) Output(_ int, _ bool, p []byte) error {
	_, err := m.out.Write(p)
	return err
}
