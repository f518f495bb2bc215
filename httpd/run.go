package httpd

import (
	"context"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// run makes a box, runs a command in it and removes the box. It does so even if
// the client disconnects or this process ends meanwhile.
func (s *Server) run(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, options.MaxCommand)
	if err != nil {
		return err
	}
	if doc == nil {
		doc = []byte("{}") // so that the reply names the members that are missing
	}
	o, asked, err := options.DecodeRun(doc, s.complete(r), s.Runtime.CheckLimits)
	if err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	if asked.Exec.Cmd == nil {
		if asked.Exec.Cmd, err = s.Runtime.Command(ctx, o.Image); err != nil {
			return err
		}
	}
	start := time.Now()
	result, err := s.runIn(ctx, o, asked)
	if err != nil {
		return s.brokenOff(err)
	}
	result.DurationMS = time.Since(start).Milliseconds()
	return writeJSON(w, http.StatusOK, result)
}

// runIn returns the result once the box is removed.
func (s *Server) runIn(ctx context.Context, o options.Box, asked options.ExecRequest) (api.RunResult, error) {
	box, _, err := s.Runtime.CreateOwned(ctx, o)
	if err != nil {
		return api.RunResult{}, err
	}
	result, err := s.runOnce(ctx, box, asked)
	removing := s.Runtime.Remove(context.WithoutCancel(ctx), box.ID(), true)
	if err == nil && !fault.Is(removing, fault.BoxNotFound) { // if the box's init has ended, the box may be gone already
		err = removing
	}
	return result, err
}

func (s *Server) runOnce(ctx context.Context, box *core.Box, asked options.ExecRequest) (api.RunResult, error) {
	command, err := box.Exec(ctx, asked.Exec)
	if err != nil {
		return api.RunResult{}, err
	}
	defer command.Close()
	if asked.Exec.Stdin {
		go feed(command, command.Stdin().Write, asked.Input)
	}
	var kept api.Capture
	sink, done := s.recorded(command, kept.Add)
	defer done()
	end, err := command.Stream(ctx, make([]byte, core.OutputBuffer), sink)
	if err != nil {
		return api.RunResult{}, err
	}
	return kept.Result(end), nil
}

// recorded returns two functions. both passes a command's output to sink and
// also to the log table, and the other one is called after the last of the
// output.
func (s *Server) recorded(command *core.Exec, sink func(stderr bool, p []byte) error) (both func(stderr bool, p []byte) error, done func()) {
	if s.Lines == nil {
		return sink, func() {}
	}
	add, end := s.Lines(command.Record())
	return func(stderr bool, p []byte) error {
		add(stderr, p)
		return sink(stderr, p)
	}, end
}
