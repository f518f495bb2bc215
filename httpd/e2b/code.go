package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/options"
)

// codeRequest is the document that runs code.
type codeRequest struct {
	Code     string            `json:"code"`
	Context  *string           `json:"context_id"`
	Language *string           `json:"language"`
	Env      map[string]string `json:"env_vars"`
}

// runCode runs code of the code interpreter and streams what it prints and shows, a
// document a line. A client that leaves interrupts it.
func (s *Server) runCode(w http.ResponseWriter, r *http.Request, box *core.Box) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxMessage)
	var asked codeRequest
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	ctx, cancel := s.streaming(r.Context())
	defer cancel()
	o := options.Code{Code: asked.Code, Env: asked.Env}
	if asked.Context != nil {
		o.Context = *asked.Context
	}
	if o.Context == "" {
		var err error
		if o.Context, err = s.ownContext(ctx, box, language(asked.Language)); err != nil {
			return err
		}
	}
	run, err := s.Code.Run(ctx, box, o)
	if err != nil {
		return err
	}
	defer func() { _ = run.Close() }()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	lines{w: w, to: json.NewEncoder(w)}.follow(ctx, run)
	return nil
}

// language returns the language that is asked for; Python where none is.
func language(name *string) api.Language {
	if name == nil || *name == "" {
		return api.Python
	}
	return api.Language(strings.ToLower(*name))
}

// lines writes the events of a run.
type lines struct {
	w  http.ResponseWriter
	to *json.Encoder
}

// follow writes events until the last one, or until the client or the server goes. It
// flushes before it waits.
func (l lines) follow(ctx context.Context, run *code.Run) {
	for {
		if !run.Ready() && http.NewResponseController(l.w).Flush() != nil {
			return
		}
		e, err := run.Next(ctx)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return
		case ctx.Err() != nil: // the context that the code ran in lives on
			_ = l.to.Encode(codeError{"error", api.CodeError{Name: "ServiceEnds", Value: errEnds().Error()}})
			return
		default:
			_ = l.to.Encode(lostRun(err.Error()))
			return
		}
		for _, line := range linesOf(e, time.Now()) {
			if l.to.Encode(line) != nil {
				return
			}
		}
	}
}

// codeText, codeCount and codeError are lines of a run, beside a shown.
type (
	codeText struct {
		Type string `json:"type"`
		Text string `json:"text"`
		At   int64  `json:"timestamp"` // nanoseconds
	}
	codeCount struct {
		Type  string `json:"type"`
		Count int    `json:"execution_count"`
	}
	codeError struct {
		Type string `json:"type"`
		api.CodeError
	}
)

// linesOf returns an event as the code interpreter tells of it.
func linesOf(e api.CodeEvent, now time.Time) []any {
	switch {
	case e.Type == api.CodeStart:
		return []any{codeCount{"number_of_executions", e.ExecutionCount}}
	case e.Type == api.CodeStdout, e.Type == api.CodeStderr:
		return []any{codeText{string(e.Type), e.Text, now.UnixNano()}}
	case e.Type == api.CodeShown && e.Result != nil:
		return []any{show(*e.Result)}
	case e.Type == api.CodeRaised && e.Error != nil:
		return []any{codeError{"error", *e.Error}}
	case e.Type == api.CodeEnd && e.Status == api.CodeLost:
		return []any{lostRun("the process that ran the code has ended, and all that code had defined in it is lost")}
	}
	return nil
}

// lostRun is the line that tells why a run has no end of its own.
func lostRun(why string) codeError {
	return codeError{"error", api.CodeError{Name: "ContextLost", Value: why}}
}

// shown is a line with a value that code has shown.
type shown struct {
	Type string `json:"type"`
	Main bool   `json:"is_main_result"`
	api.CodeResult
	// Data has the columns of a data frame by their names.
	Data map[string][]json.RawMessage `json:"data,omitempty"`
}

// show returns the line of a value. A data frame is told of by its columns.
func show(result api.CodeResult) shown {
	line := shown{Type: "result", Main: result.IsMain, CodeResult: result}
	if result.Table == nil {
		return line
	}
	line.Table, line.Data = nil, map[string][]json.RawMessage{}
	for i, column := range result.Table.Columns {
		line.Data[column.Name] = []json.RawMessage{}
		for _, row := range result.Table.Rows {
			if i < len(row) {
				line.Data[column.Name] = append(line.Data[column.Name], row[i])
			}
		}
	}
	return line
}

// codeContext is what is told of a context.
type codeContext struct {
	ID       string       `json:"id"`
	Language api.Language `json:"language"`
	Cwd      string       `json:"cwd"`
}

func contextOf(c api.CodeContext) codeContext {
	return codeContext{c.ID, c.Language, path.Clean(c.WorkingDir)}
}

// here behind the home of the user marks the context of a language that code runs in
// where its client names none.
const here = "/."

// ownContext returns the id of the context that code of a language runs in where its
// client names none. It begins in the user's home, which the native API's own does not.
func (s *Server) ownContext(ctx context.Context, box *core.Box, l api.Language) (string, error) {
	user, err := s.account(ctx, box, defaultUser)
	if err != nil {
		return "", err
	}
	one := s.accounts.of(box.ID())
	one.contexts.Lock() // two runs must not make one each
	defer one.contexts.Unlock()
	all, err := s.Code.List(ctx, box)
	if err != nil {
		return "", err
	}
	own := func(c api.CodeContext) bool { return c.Language == l && c.WorkingDir == user.home+here }
	if at := slices.IndexFunc(all, own); at >= 0 {
		return all[at].ID, nil
	}
	made, err := s.Code.Create(ctx, box, options.CodeContext{Language: l, WorkingDir: user.home + here, User: user.name})
	return made.ID, err
}

// createContext makes a context.
func (s *Server) createContext(w http.ResponseWriter, r *http.Request, box *core.Box) error {
	var asked struct {
		Language *string `json:"language"`
		Cwd      string  `json:"cwd"`
	}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	user, err := s.account(r.Context(), box, defaultUser)
	if err != nil {
		return err
	}
	made, err := s.Code.Create(r.Context(), box, options.CodeContext{
		Language: language(asked.Language), WorkingDir: path.Clean(user.under(asked.Cwd)), User: user.name,
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, contextOf(made))
}

func (s *Server) listContexts(w http.ResponseWriter, r *http.Request, box *core.Box) error {
	all, err := s.Code.List(r.Context(), box)
	if err != nil {
		return err
	}
	list := []codeContext{}
	for _, c := range all {
		list = append(list, contextOf(c))
	}
	return writeJSON(w, http.StatusOK, list)
}

func (s *Server) removeContext(w http.ResponseWriter, r *http.Request, box *core.Box) error {
	if err := s.Code.Remove(r.Context(), box, r.PathValue("context")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) restartContext(w http.ResponseWriter, r *http.Request, box *core.Box) error {
	about, err := s.Code.Restart(r.Context(), box, r.PathValue("context"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, contextOf(about))
}
