package backend

import (
	"context"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/image"
	"sandbox/core/local"
	"sandbox/core/options"
)

// hostBoxes are the boxes of this host, worked on in process.
type hostBoxes struct {
	host     *local.Host
	contexts *code.Contexts
}

// OnHost returns the boxes of a home of this host. They own the host.
func OnHost(h *local.Host) Boxes { return hostBoxes{h, code.New()} }

// box returns the box that ref names. With a full id it does not look whether there
// is one: what is done with it does.
func (h hostBoxes) box(ctx context.Context, ref string) (*core.Box, error) {
	if ids.Box.Valid(ref) {
		return h.host.At(ref), nil
	}
	return h.host.Get(ctx, ref)
}

func (h hostBoxes) CreateBox(ctx context.Context, o options.Box) (api.Box, error) {
	_, rec, err := h.host.Create(ctx, o)
	return shown(rec, err)
}

func (h hostBoxes) Boxes(ctx context.Context, f client.Filter) ([]api.Box, error) {
	recs, err := h.host.List(ctx)
	if err != nil {
		return nil, err
	}
	all := []api.Box{}
	for _, rec := range recs {
		if f.Status == "" || f.Status == rec.Status {
			all = append(all, rec.Summary())
		}
	}
	return all, nil
}

func (h hostBoxes) Box(ctx context.Context, ref string) (api.Box, error) {
	rec, err := h.host.Find(ctx, ref)
	return shown(rec, err)
}

func (h hostBoxes) BoxMetrics(ctx context.Context, ref string) (api.BoxMetrics, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.BoxMetrics{}, err
	}
	return b.Metrics(ctx)
}

// BoxSeries fails: who measures over time lives for longer than a program.
func (h hostBoxes) BoxSeries(context.Context, string, client.Series) (api.BoxSeries, error) {
	return api.BoxSeries{}, fault.New(fault.Unsupported, "only a server measures boxes over time: run 'sandbox serve', and use its address")
}

func (h hostBoxes) StartBox(ctx context.Context, ref string) (api.Box, error) {
	return h.with(ctx, ref, (*core.Box).Start)
}

func (h hostBoxes) StopBox(ctx context.Context, ref string, grace time.Duration) (api.Box, error) {
	return h.with(ctx, ref, func(b *core.Box, ctx context.Context) (core.Record, error) { return b.Stop(ctx, grace) })
}

func (h hostBoxes) PauseBox(ctx context.Context, ref string, reclaim bool) (api.Box, error) {
	return h.with(ctx, ref, func(b *core.Box, ctx context.Context) (core.Record, error) { return b.Pause(ctx, reclaim) })
}

func (h hostBoxes) ResumeBox(ctx context.Context, ref string) (api.Box, error) {
	return h.with(ctx, ref, (*core.Box).Resume)
}

func (h hostBoxes) UpdateBox(ctx context.Context, ref string, u options.Update) (api.Box, error) {
	return h.with(ctx, ref, func(b *core.Box, ctx context.Context) (core.Record, error) { return b.Update(ctx, u) })
}

// with calls do with a box and returns the box's new state.
func (h hostBoxes) with(ctx context.Context, ref string, do func(*core.Box, context.Context) (core.Record, error)) (api.Box, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.Box{}, err
	}
	rec, err := do(b, ctx)
	return shown(rec, err)
}

func (h hostBoxes) RemoveBox(ctx context.Context, ref string, force bool) (string, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return "", err
	}
	return b.ID(), b.Remove(ctx, force)
}

func (h hostBoxes) GC(ctx context.Context, olderThan time.Duration) (api.Collected, error) {
	swept, err := h.host.Sweep(ctx, olderThan)
	return api.Collected{Removed: len(swept.Boxes), ReclaimedBytes: swept.Bytes, Boxes: append([]string{}, swept.Boxes...)}, err
}

func (h hostBoxes) Upload(ctx context.Context, ref string, u client.Upload, content io.Reader) (api.Uploaded, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.Uploaded{}, err
	}
	return b.Upload(ctx, core.Upload{Dest: u.Dest, Name: u.Name, Mode: u.Mode, Tar: u.Tar, User: u.User}, content)
}

func (h hostBoxes) Download(ctx context.Context, ref string, o options.Download) (*client.Download, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return nil, err
	}
	d, err := b.Download(ctx, o)
	return (*client.Download)(d), err
}

func (h hostBoxes) StatFile(ctx context.Context, ref string, o options.StatFile) (api.File, error) {
	return onFiles(ctx, h, ref, o, (*core.Box).StatFile)
}

func (h hostBoxes) ListFiles(ctx context.Context, ref string, o options.ListFiles) (api.Files, error) {
	return onFiles(ctx, h, ref, o, (*core.Box).ListFiles)
}

func (h hostBoxes) MakeDirectory(ctx context.Context, ref string, o options.MakeDirectory) (api.MadeDirectory, error) {
	return onFiles(ctx, h, ref, o, (*core.Box).MakeDirectory)
}

func (h hostBoxes) MoveFile(ctx context.Context, ref string, o options.MoveFile) (api.File, error) {
	return onFiles(ctx, h, ref, o, (*core.Box).MoveFile)
}

func (h hostBoxes) RemoveFile(ctx context.Context, ref string, o options.RemoveFile) (api.RemovedFiles, error) {
	return onFiles(ctx, h, ref, o, (*core.Box).RemoveFile)
}

func (h hostBoxes) WatchFiles(ctx context.Context, ref string, o options.WatchFiles) (*core.FileWatch, error) {
	return onFiles(ctx, h, ref, o, (*core.Box).WatchFiles)
}

func (h hostBoxes) Connect(ctx context.Context, ref string, port int) (net.Conn, error) {
	return onFiles(ctx, h, ref, port, (*core.Box).Connect)
}

// Share fails: who follows a link comes to a server.
func (h hostBoxes) Share(context.Context, string, int, time.Duration) (api.Share, error) {
	return api.Share{}, fault.New(fault.Unsupported, "only a server makes links to ports of boxes: run 'sandbox serve', and use its address")
}

// onFiles calls do with a box.
func onFiles[O, T any](ctx context.Context, h hostBoxes, ref string, o O, do func(*core.Box, context.Context, O) (T, error)) (T, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		var none T
		return none, err
	}
	return do(b, ctx, o)
}

// Keep fails: the boxes are tied to this process, however it ends.
func (h hostBoxes) Keep() error {
	return fault.New(fault.InvalidState, "this command can't be left: its box ends with it. To leave it, run it with --keep or with a daemon ('sandbox serve')")
}

func (h hostBoxes) Metrics(ctx context.Context) (api.RuntimeMetrics, error) {
	return h.host.Metrics(ctx)
}

func (h hostBoxes) Shutdown(ctx context.Context, grace time.Duration) error {
	return h.host.Shutdown(ctx, grace)
}

func (h hostBoxes) Close(ctx context.Context) error { return h.host.Close(ctx) }

func (h hostBoxes) ImageCommand(ctx context.Context, ref string, progress func(api.ImageProgress)) ([]string, error) {
	return h.host.Command(image.WithProgress(ctx, progress), ref)
}

func (h hostBoxes) Images(context.Context) ([]api.Image, error) { return h.host.Images.List() }

func (h hostBoxes) Image(_ context.Context, ref string) (api.Image, error) {
	return h.host.Images.Describe(ref)
}

func (h hostBoxes) Pull(ctx context.Context, ref string, progress func(api.ImageProgress)) (api.Image, error) {
	return h.host.Images.Pull(ctx, ref, progress)
}

func (h hostBoxes) RemoveImage(ctx context.Context, ref string, force bool) error {
	return h.host.Images.Remove(ctx, ref, force)
}

func (h hostBoxes) ImportImage(ctx context.Context, name, source string, progress func(api.ImageProgress)) (api.Image, error) {
	return h.host.Images.Import(ctx, name, source, progress)
}

func (h hostBoxes) ExportImage(ctx context.Context, ref string, w io.Writer, o image.ExportOptions) error {
	return h.host.Images.Export(ctx, ref, w, o)
}

func (h hostBoxes) PushImage(ctx context.Context, ref string, o image.PushOptions) (api.Pushed, error) {
	return h.host.Images.Push(ctx, ref, o)
}

// shown returns a record in the service's form.
func shown(rec core.Record, err error) (api.Box, error) {
	if err != nil {
		return api.Box{}, err
	}
	return rec.Info(), nil
}

// shell starts /bin/bash if the box has it, else /bin/sh.
var shell = []string{"/bin/sh", "-c", "[ -x /bin/bash ] && exec /bin/bash; exec /bin/sh"}

func (h hostBoxes) StartExec(ctx context.Context, ref string, o options.Exec) (api.Exec, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.Exec{}, err
	}
	e, err := b.Exec(ctx, o)
	if err != nil {
		return api.Exec{}, err
	}
	return e.Record(), e.Detach()
}

func (h hostBoxes) Exec(ctx context.Context, ref, id string) (api.Exec, error) {
	if c, err := h.kept(ctx, ref, id); !fault.Is(err, fault.ExecNotFound) {
		if err != nil {
			return api.Exec{}, err
		}
		return c.e.Record(), nil
	}
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.Exec{}, err
	}
	return b.ExecRecord(ctx, id)
}

func (h hostBoxes) Execs(ctx context.Context, ref string) ([]api.Exec, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return nil, err
	}
	return b.Execs(ctx)
}

func (h hostBoxes) CancelExec(ctx context.Context, ref, id string, grace time.Duration) (api.Exec, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.Exec{}, err
	}
	return b.Cancel(ctx, id, grace)
}

func (h hostBoxes) Signal(ctx context.Context, ref, id string, sig unix.Signal) error {
	b, err := h.box(ctx, ref)
	if err != nil {
		return err
	}
	_, err = b.Signal(ctx, id, int(sig))
	return err
}

func (h hostBoxes) Run(ctx context.Context, ref string, o options.Exec) (Command, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return nil, err
	}
	e, err := b.Exec(ctx, o)
	if err != nil {
		return nil, err
	}
	return newHostCommand(e, e.Close), nil
}

func (h hostBoxes) Join(ctx context.Context, ref, id string, _ bool) (Command, error) {
	if c, err := h.kept(ctx, ref, id); !fault.Is(err, fault.ExecNotFound) {
		return joined(c, err)
	}
	b, err := h.box(ctx, ref)
	if err != nil {
		return nil, err
	}
	e, err := b.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	return newHostCommand(e, e.Detach), nil
}

// Observe fails but for main commands: the pipes of another command in process have one
// reader.
func (h hostBoxes) Observe(ctx context.Context, ref, id string) (Command, error) {
	if c, err := h.kept(ctx, ref, id); !fault.Is(err, fault.ExecNotFound) {
		return joined(c, err)
	}
	return nil, fault.New(fault.Unsupported, "only a server shows a command's output to several at once: run 'sandbox serve'")
}

func (h hostBoxes) Shell(ctx context.Context, ref string, o client.TerminalOptions) (Command, error) {
	x := options.Exec{Cmd: shell, TTY: true, Stdin: true, Cols: o.Cols, Rows: o.Rows, Env: map[string]string{}}
	if o.Shell != "" {
		x.Cmd = []string{o.Shell}
	}
	if o.Term != "" {
		x.Env["TERM"] = o.Term
	}
	return h.Run(ctx, ref, x)
}
