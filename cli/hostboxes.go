package cli

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"sandbox/client"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/local"
	"sandbox/core/options"
)

// hostBoxes are the boxes of this host, worked on in process.
type hostBoxes struct{ host *local.Host }

func (h hostBoxes) CreateBox(ctx context.Context, o options.Box) (client.Box, error) {
	b, err := h.host.Create(ctx, o)
	if err != nil {
		return client.Box{}, err
	}
	rec, err := b.Record(ctx)
	return shown(rec, err)
}

func (h hostBoxes) Boxes(ctx context.Context, f client.Filter) ([]client.Box, error) {
	recs, err := h.host.List(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]core.Info, 0, len(recs))
	for _, rec := range recs {
		if f.Status == "" || f.Status == string(rec.State) {
			all = append(all, rec.Summary())
		}
	}
	return document[[]client.Box](all)
}

func (h hostBoxes) Box(ctx context.Context, ref string) (client.Box, error) {
	return h.with(ctx, ref, (*core.Box).Record)
}

func (h hostBoxes) StartBox(ctx context.Context, ref string) (client.Box, error) {
	return h.with(ctx, ref, (*core.Box).Start)
}

func (h hostBoxes) StopBox(ctx context.Context, ref string, grace time.Duration) (client.Box, error) {
	return h.with(ctx, ref, func(b *core.Box, ctx context.Context) (core.Record, error) { return b.Stop(ctx, grace) })
}

// with does something to a box and shows what became of it.
func (h hostBoxes) with(ctx context.Context, ref string, do func(*core.Box, context.Context) (core.Record, error)) (client.Box, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return client.Box{}, err
	}
	rec, err := do(b, ctx)
	return shown(rec, err)
}

func (h hostBoxes) RemoveBox(ctx context.Context, ref string, force bool) (string, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return "", err
	}
	return b.ID(), h.host.Remove(ctx, b.ID(), force)
}

func (h hostBoxes) GC(ctx context.Context, olderThan time.Duration) (client.Collected, error) {
	swept, err := h.host.Sweep(ctx, olderThan)
	return client.Collected{Removed: len(swept.Boxes), ReclaimedBytes: swept.Bytes, Boxes: append([]string{}, swept.Boxes...)}, err
}

func (h hostBoxes) Upload(ctx context.Context, ref string, u client.Upload, content io.Reader) (client.Uploaded, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return client.Uploaded{}, err
	}
	made, err := b.Upload(ctx, core.Upload(u), content)
	return client.Uploaded(made), err
}

func (h hostBoxes) Download(ctx context.Context, ref, path string, tar bool) (*client.Download, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	d, err := b.Download(ctx, path, tar)
	return (*client.Download)(d), err
}

func (h hostBoxes) Close(ctx context.Context) error { return h.host.Close(ctx) }

// shown returns a record as the service shows it.
func shown(rec core.Record, err error) (client.Box, error) {
	if err != nil {
		return client.Box{}, err
	}
	return document[client.Box](rec.Info())
}

// document returns what the core says as the service says it: the two have the
// same JSON.
func document[T any](v any) (t T, err error) {
	doc, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(doc, &t)
	}
	return t, fault.Wrap(fault.Internal, err, "show what the core said")
}

// bash and sh, as 'sh -c' starts them: the first that is there.
var shell = []string{"/bin/sh", "-c", "[ -x /bin/bash ] && exec /bin/bash; exec /bin/sh"}

func (h hostBoxes) StartExec(ctx context.Context, ref string, o options.Exec) (client.Exec, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return client.Exec{}, err
	}
	e, err := b.Exec(ctx, o)
	if err != nil {
		return client.Exec{}, err
	}
	shown, err := document[client.Exec](e.Record())
	return shown, joined(err, e.Detach())
}

func (h hostBoxes) Exec(ctx context.Context, ref, id string) (client.Exec, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return client.Exec{}, err
	}
	rec, err := b.ExecRecord(ctx, id)
	if err != nil {
		return client.Exec{}, err
	}
	return document[client.Exec](rec)
}

func (h hostBoxes) Execs(ctx context.Context, ref string) ([]client.Exec, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	recs, err := b.Execs(ctx)
	if err != nil {
		return nil, err
	}
	return document[[]client.Exec](recs)
}

func (h hostBoxes) Run(ctx context.Context, ref string, o options.Exec) (command, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	e, err := b.Exec(ctx, o)
	if err != nil {
		return nil, err
	}
	return hostCommand{e, e.Close}, nil
}

func (h hostBoxes) Join(ctx context.Context, ref, id string) (command, error) {
	b, err := h.host.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	e, err := b.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	return hostCommand{e, e.Detach}, nil
}

func (h hostBoxes) Shell(ctx context.Context, ref string, o client.TerminalOptions) (command, error) {
	x := options.Exec{Cmd: shell, TTY: true, Stdin: true, Cols: o.Cols, Rows: o.Rows, Env: map[string]string{}}
	if o.Shell != "" {
		x.Cmd = []string{o.Shell}
	}
	if o.Term != "" {
		x.Env["TERM"] = o.Term
	}
	return h.Run(ctx, ref, x)
}

// hostCommand is a command in process; leave ends our use of it.
type hostCommand struct {
	*core.Exec
	leave func() error
}

func (c hostCommand) Input() io.WriteCloser {
	if in := c.Stdin(); in != nil {
		return in
	}
	return nil
}

func (c hostCommand) Stream(ctx context.Context, sink func(bool, []byte) error) (core.ExecStatus, error) {
	return c.Exec.Stream(ctx, make([]byte, core.OutputBuffer), sink)
}

func (c hostCommand) Close() error { return c.leave() }
