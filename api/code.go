package api

import (
	"encoding/json"
	"time"
)

// Language is a language that code in a box can have (contract, section 3).
type Language string

// The languages. Each is also the id of the context that runs code of this language
// where none is named.
const (
	Python     Language = "python"
	JavaScript Language = "javascript"
	Bash       Language = "bash"
)

// Known tells whether l is one of the languages.
func (l Language) Known() bool { return l == Python || l == JavaScript || l == Bash }

// CodeContext is a process of a box that runs code piece by piece, and keeps what the
// code has defined.
type CodeContext struct {
	ID         string    `json:"id"`
	BoxID      string    `json:"box_id"`
	ExecID     string    `json:"exec_id"` // of its process; a restart gives it another one
	Language   Language  `json:"language"`
	WorkingDir string    `json:"working_dir"` // where it began
	User       string    `json:"user"`
	CreatedAt  time.Time `json:"created_at"` // or restarted
}

// CodeEventType is what an event of a run of code tells.
type CodeEventType string

// What an event of a run tells. The first one is a CodeStart, the last one a CodeEnd.
const (
	CodeStart  CodeEventType = "start"
	CodeStdout CodeEventType = "stdout"
	CodeStderr CodeEventType = "stderr"
	CodeShown  CodeEventType = "result"
	CodeRaised CodeEventType = "error"
	CodeEnd    CodeEventType = "end"
)

// CodeStatus is how a run of code ended.
type CodeStatus string

// How a run of code ends.
const (
	CodeSucceeded   CodeStatus = "succeeded"
	CodeFailed      CodeStatus = "failed"      // an error says why
	CodeInterrupted CodeStatus = "interrupted" // by request
	CodeTimedOut    CodeStatus = "timed_out"
	CodeLost        CodeStatus = "lost" // the process of its context has ended
)

// CodeEvent is one event of a run of code. Only the members of its type are set.
type CodeEvent struct {
	Type CodeEventType `json:"type"`

	// Of a start. Fresh says that the context was made for this run.
	ContextID      string `json:"context_id,omitzero"`
	ExecutionCount int    `json:"execution_count,omitzero"` // from 1 on, since the context was made or restarted
	Fresh          bool   `json:"fresh,omitzero"`

	Text   string      `json:"text,omitzero"` // of stdout and stderr; U+FFFD stands for each byte that is not UTF-8
	Result *CodeResult `json:"result,omitzero"`
	Error  *CodeError  `json:"error,omitzero"`

	// Of an end. Restarted says that the context has begun anew: its process has
	// ended, and all that code had defined in it is lost.
	Status     CodeStatus `json:"status,omitzero"`
	DurationMS *int64     `json:"duration_ms,omitzero"`
	Restarted  bool       `json:"restarted,omitzero"`
}

// CodeResult is a value that code has shown, in all the forms that it has.
type CodeResult struct {
	IsMain     bool                       `json:"is_main"` // the value of the last expression
	Text       *string                    `json:"text,omitzero"`
	HTML       *string                    `json:"html,omitzero"`
	Markdown   *string                    `json:"markdown,omitzero"`
	SVG        *string                    `json:"svg,omitzero"`
	PNG        *string                    `json:"png,omitzero"`  // base64
	JPEG       *string                    `json:"jpeg,omitzero"` // base64
	PDF        *string                    `json:"pdf,omitzero"`  // base64
	LaTeX      *string                    `json:"latex,omitzero"`
	JSON       json.RawMessage            `json:"json,omitzero"`
	JavaScript *string                    `json:"javascript,omitzero"`
	Table      *CodeTable                 `json:"table,omitzero"`
	Chart      json.RawMessage            `json:"chart,omitzero"` // what a figure of matplotlib shows, as data
	Extra      map[string]json.RawMessage `json:"extra,omitzero"` // other media types
}

// CodeTable is a data frame.
type CodeTable struct {
	Columns   []CodeColumn        `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows"`       // the first of them
	TotalRows int                 `json:"total_rows"` // that the data frame has
}

// CodeColumn is a column of a table.
type CodeColumn struct {
	Name string `json:"name"`
	Type string `json:"type"` // as the language names it
}

// CodeError is the error that code ended with.
type CodeError struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}
