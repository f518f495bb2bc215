package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// RunRequest is a box and the one command that it is made for.
type RunRequest struct {
	Box  options.Box
	Exec options.Exec // its environment, working directory and user stand over the box's
	// Stdin is all of the command's input.
	Stdin string
}

// RunResult is what a command gave.
type RunResult struct {
	ExitCode   int // 128+N after death by signal N
	Signal     *int
	Reason     string
	Stdout     []byte // the first 10 MiB
	Stderr     []byte
	Truncated  bool // there was more output
	DurationMS int64
}

// body is the document that asks for the run: the members of a box and those
// of an exec at one level.
func (r RunRequest) body() (map[string]any, error) {
	exec := newExecBody(r.Exec)
	exec.Stdin, exec.StdinOpen = r.Stdin, false
	exec.Env = maps.Clone(r.Box.Env)
	if exec.Env == nil {
		exec.Env = map[string]string{}
	}
	maps.Copy(exec.Env, r.Exec.Env)
	members := map[string]any{}
	for _, part := range []any{r.Box, exec} {
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

// Run makes a box, runs a command in it, and removes the box, which is gone
// afterwards also when ctx ends. It is never sent twice. Errors: those of
// [Client.CreateBox].
func (c *Client) Run(ctx context.Context, r RunRequest) (RunResult, error) {
	var d struct {
		ExitCode       int    `json:"exit_code"`
		Signal         *int   `json:"signal"`
		Reason         string `json:"reason"`
		Stdout         string `json:"stdout"`
		Stderr         string `json:"stderr"`
		StdoutEncoding string `json:"stdout_encoding"`
		StderrEncoding string `json:"stderr_encoding"`
		Truncated      bool   `json:"truncated"`
		DurationMS     int64  `json:"duration_ms"`
	}
	body, err := r.body()
	if err != nil {
		return RunResult{}, err
	}
	if err := c.call(ctx, request{method: http.MethodPost, path: "/v1/run", body: body}, &d); err != nil {
		return RunResult{}, err
	}
	result := RunResult{ExitCode: d.ExitCode, Signal: d.Signal, Reason: d.Reason, Truncated: d.Truncated, DurationMS: d.DurationMS}
	if result.Stdout, err = decoded(d.Stdout, d.StdoutEncoding); err == nil {
		result.Stderr, err = decoded(d.Stderr, d.StderrEncoding)
	}
	return result, fault.Wrap(fault.Upstream, err, "%s answered output that can't be read", c.url)
}

// decoded returns the bytes of output that JSON carried.
func decoded(text, encoding string) ([]byte, error) {
	if encoding == "base64" {
		return base64.StdEncoding.DecodeString(text)
	}
	return []byte(text), nil
}
