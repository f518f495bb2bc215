package build

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sandbox/api"
	"sandbox/core/build/recipe"
	"sandbox/core/fault"
	"sandbox/core/image"
)

// prepare finds all that the build needs: the images that it stands on and copies from,
// which are pulled if need be, and the files of the context. Nothing runs before.
func (w *work) prepare(ctx context.Context) error {
	w.lent = map[recipe.Source]api.Image{}
	for _, planned := range w.plan.Stages {
		s := &stage{Stage: planned}
		var err error
		if s.image, err = w.base(ctx, planned); err != nil {
			return at(planned.Line, planned.Text, err)
		}
		if s.steps, err = w.plan.Steps(planned, s.image); err != nil {
			return err
		}
		for line, ref := range planned.Images {
			if err := w.lend(ctx, ref); err != nil {
				return at(line, "COPY --from="+ref, err)
			}
		}
		if err := cmp.Or(w.find(s), w.fits(s)); err != nil {
			return err
		}
		w.stages = append(w.stages, s)
	}
	return nil
}

// base returns the image that a stage stands on. Of an earlier stage it is what the last
// step of that says of it.
func (w *work) base(ctx context.Context, s recipe.Stage) (api.Image, error) {
	switch {
	case s.Base.Stage >= 0:
		below := w.stages[s.Base.Stage]
		if n := len(below.steps); n > 0 {
			return below.steps[n-1].Image, nil
		}
		return below.image, nil
	case s.Base.Image == recipe.Scratch:
		return w.Images.Scratch(ctx)
	}
	return w.Images.Get(ctx, s.Base.Image, w.Report.Pull)
}

// lend finds an image that files are copied from.
func (w *work) lend(ctx context.Context, ref string) error {
	from := recipe.Source{Stage: -1, Image: ref}
	if _, ok := w.lent[from]; ok {
		return nil
	}
	img, err := w.Images.Get(ctx, ref, w.Report.Pull)
	if err != nil && !strings.ContainsAny(ref, "/:@") {
		err = fmt.Errorf("no stage of the recipe has this name: %w", err)
	}
	w.lent[from] = img
	return err
}

// fits refuses a stage whose image would have more layers than one may have. Those of an
// earlier stage count too.
func (w *work) fits(s *stage) error {
	s.depth = len(s.image.Layers)
	if s.Base.Stage >= 0 {
		s.depth = w.stages[s.Base.Stage].depth
	}
	made := false // a directory, which the next layer is to have
	for i, step := range s.steps {
		made = made || step.Directory != ""
		if !layered(step, made, i == len(s.steps)-1) {
			continue
		}
		made = false
		if s.depth++; s.depth > image.MaxLayers {
			return at(step.Line, step.Text, fault.New(fault.ResourceExhausted,
				"the image would have more than %d layers: join commands in one RUN, and files in one COPY", image.MaxLayers))
		}
	}
	return nil
}

// find looks for the files of the context that the steps of a stage copy.
func (w *work) find(s *stage) error {
	for _, step := range s.steps {
		if step.Copy == nil || step.Copy.From != (recipe.Source{Stage: -1}) {
			continue
		}
		if w.Context == nil {
			return at(step.Line, step.Text, fault.New(fault.InvalidArgument, "the build has no context to copy from"))
		}
		for _, source := range step.Copy.Sources {
			if _, err := w.Context.Match(source); err != nil {
				return at(step.Line, step.Text, err)
			}
		}
	}
	return nil
}

// sources returns the paths of the context that a step copies, each once.
func (w *work) sources(c *recipe.Copy) ([]string, error) {
	var all []string
	for _, pattern := range c.Sources {
		found, err := w.Context.Match(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all, nil
}
