package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/build/recipe"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
)

// keyVersion is changed when steps come to make something else of the same recipe.
const keyVersion = 1

// identity is all that a layer depends on. Its digest is the key of the step. A layer
// that a box has made has a random key, so that what stands on one that was made anew is
// made anew too.
type identity struct {
	Version     int
	Layers      []string // below it
	Directories []string
	Env         []string
	User        string
	WorkingDir  string
	Run         *recipe.Run  `json:",omitempty"`
	NoNetwork   bool         `json:",omitempty"`
	Copy        *recipe.Copy `json:",omitempty"`
	From        []string     `json:",omitempty"` // the layers that files are copied from
	Files       [][2]string  `json:",omitempty"` // the paths and digests of files of the context
}

// layer returns what a step makes, and whether it had been made before.
func (w *work) layer(ctx context.Context, s *stage, step recipe.Step) (image.Step, bool, error) {
	key, err := w.key(ctx, s, step)
	if err != nil {
		return image.Step{}, false, err
	}
	if made, ok := w.Images.Made(key); ok && !w.NoCache {
		return made, true, nil
	}
	w.begin(step)
	made, err := w.Images.Make(ctx, key, func(layer string) (core.Image, error) { return w.make(ctx, s, step, key, layer) })
	return made, false, err
}

// key returns the key of a step.
func (w *work) key(ctx context.Context, s *stage, step recipe.Step) (string, error) {
	id := identity{Version: keyVersion, Layers: s.image.Layers, Directories: s.made, Run: step.Run, Copy: step.Copy}
	if step.Run != nil {
		id.Env, id.User, id.WorkingDir = step.Image.Env, step.Image.User, step.Image.WorkingDir
		id.NoNetwork = w.NoNetwork
	}
	if step.Copy != nil {
		if err := w.identify(ctx, step.Copy, &id); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(id)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), fault.Wrap(fault.Internal, err, "encode a step")
}

// identify adds what a step copies.
func (w *work) identify(ctx context.Context, c *recipe.Copy, id *identity) error {
	if c.From != (recipe.Source{Stage: -1}) {
		id.From = w.lender(c.From).Layers
		return nil
	}
	names, err := w.sources(c)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := w.Context.Find(name)
		if err != nil {
			return err
		}
		digest, err := w.Context.Digest(ctx, f)
		if err != nil {
			return err
		}
		id.Files = append(id.Files, [2]string{name, digest})
	}
	return nil
}

// make carries a step out in a box, whose disk becomes the layer. Whatever happens, the
// box is gone then.
func (w *work) make(ctx context.Context, s *stage, step recipe.Step, key, layer string) (img core.Image, err error) {
	b, err := w.box(ctx, s.image, step.Run != nil && step.Run.Network)
	if err != nil {
		return core.Image{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(ctx, b))
		}
	}()
	for _, dir := range s.made {
		if _, err := b.MakeDirectory(ctx, options.MakeDirectory{Path: dir}); err != nil {
			return core.Image{}, err
		}
	}
	switch {
	case step.Run != nil:
		err = w.command(ctx, b, step)
	case step.Copy != nil:
		err = w.copied(ctx, b, s, step, key)
	}
	if err != nil {
		return core.Image{}, err
	}
	return b.Finish(ctx, layer)
}

// copied copies files into a box, and fails if they are not those of the key any more:
// the layer would be taken for what it is not by every later build of the files as they
// were.
func (w *work) copied(ctx context.Context, b *core.Box, s *stage, step recipe.Step, key string) error {
	if err := w.copy(ctx, b, step.Copy); err != nil {
		return err
	}
	now, err := w.key(ctx, s, step)
	if err == nil && now != key {
		err = fault.New(fault.InvalidArgument, "the context changed while it was read: build again")
	}
	return err
}

// remove removes a box, also after ctx has ended.
func remove(ctx context.Context, b *core.Box) error {
	err := b.Remove(context.WithoutCancel(ctx), true)
	if fault.Is(err, fault.BoxNotFound) {
		return nil
	}
	return err
}

// box makes a box that stands on an image. It ends with this process.
func (w *work) box(ctx context.Context, img api.Image, network bool) (*core.Box, error) {
	on, err := w.Images.On(api.Image{Name: img.Name, ID: img.ID, Layers: img.Layers})
	if err != nil {
		return nil, err
	}
	o := w.Options.box(network)
	if img.Name != "" {
		o.Image = img.Name
	}
	b, _, err := w.Runtime.CreateOn(ctx, on, o)
	return b, err
}

// command runs the command of a step.
func (w *work) command(ctx context.Context, b *core.Box, step recipe.Step) error {
	o := w.exec(step)
	if err := o.Check(); err != nil {
		return err
	}
	e, err := b.Exec(ctx, o)
	if err != nil {
		return err
	}
	defer e.Close()
	number := w.done + 1
	var stdout, stderr api.Characters
	report := func(isStderr bool, p []byte) error {
		if len(p) == 0 {
			return nil
		}
		return w.Report.Output(number, isStderr, p)
	}
	status, err := e.Stream(ctx, make([]byte, core.OutputBuffer), func(isStderr bool, p []byte) error {
		if isStderr {
			return report(true, stderr.Cut(p))
		}
		return report(false, stdout.Cut(p))
	})
	if err != nil {
		return err
	}
	if err := errors.Join(report(false, stdout.Left()), report(true, stderr.Left())); err != nil {
		return err
	}
	return w.judge(status)
}

// exec returns the options of the command of a step.
func (w *work) exec(step recipe.Step) options.Exec {
	env := map[string]string{}
	maps.Copy(env, step.Run.Args)
	for _, pair := range step.Image.Env {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return options.Exec{Cmd: step.Run.Argv, Env: env, WorkingDir: path.Join("/", step.Image.WorkingDir), User: step.Image.User, Timeout: w.limit()}
}

func (w *work) limit() time.Duration {
	if w.Timeout == 0 {
		return DefaultTimeout
	}
	return w.Timeout
}

// judge returns the failure of a command that has failed.
func (w *work) judge(status api.ExitStatus) error {
	switch {
	case status.Reason == api.ReasonTimedOut:
		return fault.New(fault.Timeout, "the command did not end within %v and was ended: give it more time (--timeout), or find out what it waits for", w.limit())
	case status.Reason == api.ReasonOOMKilled:
		return fault.New(fault.Image, "the command was ended, since the box was out of memory: give it more (--memory)")
	case status.Message != "":
		return fault.New(fault.Image, "the command can't be started: %s", status.Message)
	case status.Status != api.ExecSucceeded:
		return fault.New(fault.Image, "the command ended with exit code %d", status.ExitCode)
	}
	return nil
}
