package client

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// RunRequest describes a box and the one command that the box is made for.
type RunRequest struct {
	Box options.Box
	// Exec's environment, working directory and user take precedence over the
	// box's. Without a command, the image's own is run.
	Exec options.Exec
	// Stdin is all of the command's input.
	Stdin string
}

// body returns the document that asks for the run. It has the members of a box
// and those of an exec at one level.
func (r RunRequest) body() (map[string]any, error) {
	exec := newExecBody(r.Exec)
	exec.Stdin, exec.StdinOpen = r.Stdin, false
	exec.Env = maps.Clone(r.Box.Env)
	if exec.Env == nil {
		exec.Env = map[string]string{}
	}
	maps.Copy(exec.Env, r.Exec.Env)
	members := map[string]any{}
	for _, part := range []any{newCreateBody(r.Box), exec} {
		doc, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(doc, &members)
		}
		if err != nil {
			return nil, fault.Wrap(fault.InvalidArgument, err, "the request can't be written as JSON")
		}
	}
	return members, nil
}

// Run makes a box, runs a command in it, and removes the box. The box is
// removed even if ctx ends. The request is never sent twice. Errors: those of
// [Client.CreateBox], and Engine if the box's init died while the command ran:
// the result then has the output, and no exit code.
func (c *Client) Run(ctx context.Context, r RunRequest) (result api.RunResult, err error) {
	body, err := r.body()
	if err != nil {
		return api.RunResult{}, err
	}
	if err = c.call(ctx, request{method: http.MethodPost, path: "/v1/run", body: body}, &result); err != nil {
		return api.RunResult{}, err
	}
	return result, known(result.ExitCode)
}
