package mcp

import (
	"context"
	"io"
	"math"
	"time"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// commandArguments say what to run.
type commandArguments struct {
	Cmd        []string          `json:"cmd" jsonschema:"the program and its arguments; for shell syntax [\"sh\", \"-c\", \"...\"]"`
	Stdin      string            `json:"stdin,omitempty" jsonschema:"text for the command's standard input"`
	Env        map[string]string `json:"env,omitempty" jsonschema:"environment variables to set"`
	WorkingDir string            `json:"working_dir,omitempty" jsonschema:"absolute path of the directory to run in"`
	User       string            `json:"user,omitempty" jsonschema:"user to run as; leave it out for the image's, mostly root"`
	TimeoutMS  int               `json:"timeout_ms,omitempty" jsonschema:"milliseconds after which the command is ended; leave it out for the default"`
}

// runArguments are the arguments of run.
type runArguments struct {
	boxArguments
	commandArguments
}

// execArguments are the arguments of exec.
type execArguments struct {
	oneBox
	commandArguments
}

func run(ctx context.Context, s *session, in runArguments) (r api.RunResult, err error) {
	o, err := s.command(in.commandArguments)
	if err != nil {
		return r, err
	}
	b, err := s.create(ctx, s.newBox(newBox{boxArguments: in.boxArguments}))
	if err != nil {
		return r, err
	}
	r, err = s.exec(ctx, b.ID, o, in.Stdin)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), removing)
	defer cancel()
	left := s.remove(ending, b.ID)
	if err == nil && !fault.Is(left, fault.BoxNotFound) {
		err = left
	}
	return r, err
}

func exec(ctx context.Context, s *session, in execArguments) (r api.RunResult, err error) {
	ref, err := s.box(in.Box)
	if err != nil {
		return r, err
	}
	o, err := s.command(in.commandArguments)
	if err != nil {
		return r, err
	}
	return s.exec(ctx, ref, o, in.Stdin)
}

// newBox returns the options of a box, of which clients decide little.
func (s *session) newBox(in newBox) options.Box {
	o := s.Box
	o.Name = in.Name
	if in.Image != "" {
		o.Image = in.Image
	}
	return o
}

// command returns the command that is asked for. Errors: InvalidArgument.
func (s *session) command(in commandArguments) (options.Exec, error) {
	o := options.Exec{Cmd: in.Cmd, Env: in.Env, WorkingDir: in.WorkingDir, User: in.User, Stdin: in.Stdin != "", Timeout: s.Timeout}
	var p document.Problems
	if in.TimeoutMS != 0 {
		most := min(s.MaxTimeout.Milliseconds(), math.MaxInt32)
		p.Within("timeout_ms", in.TimeoutMS, 1, int(most))
		o.Timeout = time.Duration(in.TimeoutMS) * time.Millisecond
	}
	if err := p.Add(o.Check()); err != nil {
		return o, err
	}
	return o, p.Err(fault.InvalidArgument)
}

// cancelGrace is the time between SIGTERM and SIGKILL for a command that is ended.
const cancelGrace = 2 * time.Second

// exec runs a command to its end, or until ctx ends, which ends it. Errors: Engine
// (the box ended under it).
func (s *session) exec(ctx context.Context, ref string, o options.Exec, stdin string) (api.RunResult, error) {
	start := time.Now()
	c, err := s.Boxes.Run(ctx, ref, o)
	if err != nil {
		return api.RunResult{}, err
	}
	stop := context.AfterFunc(ctx, func() { cancel(c) })
	defer stop()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		feed(c, stdin)
	}()
	kept := api.Capture{Most: s.MaxOutput}
	status, err := backend.Pass(context.WithoutCancel(ctx), c, make([]byte, core.OutputBuffer), kept.Add)
	if err != nil {
		cancel(c) // closing it would leave it running
	}
	_ = c.Close()
	<-fed
	switch {
	case ctx.Err() != nil:
		return api.RunResult{}, fault.Wrap(fault.Canceled, context.Cause(ctx), "the command was ended")
	case err != nil:
		return api.RunResult{}, err
	case status.Status == api.ExecLost:
		return api.RunResult{}, fault.New(fault.Engine, "the box ended while the command ran")
	}
	r := kept.Result(status)
	r.DurationMS = time.Since(start).Milliseconds()
	return r, nil
}

// feed gives a command its input. A command may read as little as it likes.
func feed(c backend.Command, stdin string) {
	if in := c.Input(); in != nil {
		_, _ = io.WriteString(in, stdin)
		_ = in.Close()
	}
}

// cancel ends a command. That fails for one that has ended, which is as good.
func cancel(c backend.Command) {
	ctx, stop := context.WithTimeout(context.Background(), removing)
	defer stop()
	_ = c.Cancel(ctx, cancelGrace)
}
