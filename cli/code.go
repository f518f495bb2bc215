package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/code"
	"sandbox/core/fault"
	"sandbox/core/options"
)

func (a *app) codeCmd() *cobra.Command {
	var o options.Code
	var language, images string
	var timeout seconds
	var env envFlags
	cmd := &cobra.Command{
		Use:   "code [FLAGS] BOX [FILE|-]",
		Short: "Run code in a box that keeps what it defines",
		Long: `Run code in a context of a box, and print what it prints and shows. The code is
that of a file, or is read from standard input. The context keeps what the code
defines for the next run. Each language has a context of its own; 'sandbox
contexts' makes others. The box needs the language (python3, node or bash) and
nothing else.

The exit code is 0, or 1 if the code failed, 130 if it was interrupted; 125 means
that sandbox failed, not the code. Ctrl-C interrupts the code. With -o json each
event is a line.`,
		Example: `  echo '2**100' | sandbox code web
  sandbox code -l bash --timeout 10 web deploy.sh
  sandbox code --images plots web plot.py`,
		Args:        cobra.RangeArgs(1, 2),
		Annotations: map[string]string{runsCommand: "true"},
	}
	fs := cmd.Flags()
	fs.StringVarP(&language, "language", "l", "", "python, javascript or bash (default: that of the context, else python)")
	fs.StringVar(&o.Context, "context", "", "id of the context (default: the language's own)")
	fs.Var(&timeout, "timeout", "interrupt the code after this time (0: never)")
	fs.StringVar(&images, "images", "", "write images that the code shows to files in `DIR`, which is made")
	env.register(fs)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		o.Language, o.Timeout = api.Language(language), time.Duration(timeout)
		if o.Env, err = env.env(); err != nil {
			return err
		}
		if o.Code, err = a.source(append(args, "-")[1]); err != nil {
			return err
		}
		if err := o.Check(); err != nil {
			return err
		}
		return a.with(cmd.Context(), false, func(on backend.Boxes) error { return a.runCode(cmd.Context(), on, args[0], o, images) })
	}
	return a.completeBoxes(cmd, 1, api.Running)
}

// source returns the code of a file; "-" is standard input.
func (a *app) source(name string) (string, error) {
	if name == "-" {
		text, err := io.ReadAll(io.LimitReader(a.In, options.MaxCommand+1))
		return string(text), fault.Wrap(fault.InvalidArgument, err, "read the code from standard input")
	}
	text, err := os.ReadFile(name)
	return string(text), fault.Wrap(fault.InvalidArgument, err, "read the code")
}

// runCode runs code and prints its events. It returns an exit code if the code failed.
func (a *app) runCode(ctx context.Context, on backend.Boxes, ref string, o options.Code, images string) error {
	run, err := on.RunCode(ctx, ref, o)
	if err != nil {
		return err
	}
	show := codePrinter{app: a, images: images, lines: json.NewEncoder(a.Out)}
	show.lines.SetEscapeHTML(false)
	end, err := show.all(ctx, run)
	if err = joined(err, run.Close()); err != nil {
		return err
	}
	switch end {
	case api.CodeSucceeded:
		return nil
	case api.CodeInterrupted:
		return exit(exitSignal + 2)
	}
	return exit(1)
}

// codePrinter prints the events of a run.
type codePrinter struct {
	*app
	images string // directory; "" to write none
	lines  *json.Encoder
	shown  int // results with an image
}

func (p *codePrinter) all(ctx context.Context, run *code.Run) (end api.CodeStatus, err error) {
	for {
		e, err := run.Next(ctx)
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err == nil {
			err = p.print(e)
		}
		if err != nil {
			return end, err
		}
		end = e.Status
	}
}

func (p *codePrinter) print(e api.CodeEvent) (err error) {
	switch {
	case p.asJSON():
		err = p.lines.Encode(e)
	case e.Type == api.CodeStdout:
		_, err = io.WriteString(p.Out, e.Text)
	case e.Type == api.CodeStderr:
		_, err = io.WriteString(p.Err, e.Text)
	case e.Type == api.CodeRaised:
		_, err = io.WriteString(p.Err, strings.TrimSuffix(e.Error.Traceback, "\n")+"\n")
	case e.Type == api.CodeEnd && e.Status == api.CodeTimedOut:
		_, err = fmt.Fprintln(p.Err, "sandbox: the code was interrupted: its time was over")
	}
	if err == nil && e.Type == api.CodeShown {
		err = p.result(*e.Result)
	}
	return err
}

// result writes the images of a result to files, and prints it as text.
func (p *codePrinter) result(r api.CodeResult) error {
	files, err := p.write(r)
	if err != nil || p.asJSON() {
		return err
	}
	for _, form := range []*string{r.Text, r.Markdown, r.LaTeX, r.HTML} {
		if form != nil {
			files = append([]string{*form}, files...)
			break
		}
	}
	if len(files) == 0 && r.JSON != nil {
		files = append(files, string(r.JSON))
	}
	_, err = fmt.Fprintln(p.Out, strings.Join(files, "\n"))
	return err
}

// write writes the images of a result, and returns the names of the files.
func (p *codePrinter) write(r api.CodeResult) (files []string, err error) {
	if p.images == "" || r.PNG == nil && r.JPEG == nil && r.PDF == nil && r.SVG == nil {
		return nil, nil
	}
	if err := os.MkdirAll(p.images, 0o755); err != nil { //nolint:gosec // as other directories of the user
		return nil, fault.Wrap(fault.InvalidArgument, err, "--images")
	}
	p.shown++
	for extension, text := range map[string]*string{"png": r.PNG, "jpeg": r.JPEG, "pdf": r.PDF} {
		if text == nil {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(*text)
		if err != nil {
			return files, fault.Wrap(fault.Upstream, err, "read an image")
		}
		if files, err = p.writeFile(files, extension, data); err != nil {
			return files, err
		}
	}
	if r.SVG != nil {
		return p.writeFile(files, "svg", []byte(*r.SVG))
	}
	return files, nil
}

func (p *codePrinter) writeFile(files []string, extension string, data []byte) ([]string, error) {
	name := filepath.Join(p.images, strconv.Itoa(p.shown)+"."+extension)
	if err := os.WriteFile(name, data, 0o644); err != nil { //nolint:gosec // as other files of the user
		return files, fault.Wrap(fault.InvalidArgument, err, "--images")
	}
	return append(files, name), nil
}
