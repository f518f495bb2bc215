package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/feed"
)

// TestLines holds the lines of a run to what the code interpreter's SDKs read.
func TestLines(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]api.CodeEvent{
		`[{"type":"number_of_executions","execution_count":3}]`:                       {Type: api.CodeStart, ExecutionCount: 3},
		`[{"type":"stderr","text":"x","timestamp":5}]`:                                {Type: api.CodeStderr, Text: "x"},
		`[{"type":"error","name":"E","value":"v","traceback":"t"}]`:                   {Type: api.CodeRaised, Error: &api.CodeError{Name: "E", Value: "v", Traceback: "t"}},
		`[{"type":"result","is_main_result":true,"is_main":true,"data":{"a":[1,2]}}]`: {Type: api.CodeShown, Result: &api.CodeResult{IsMain: true, Table: twoRows()}},
		`null`: {Type: api.CodeEnd, Status: api.CodeSucceeded},
	} {
		got, err := json.Marshal(linesOf(e, time.Unix(0, 5)))
		if err != nil || string(got) != want {
			t.Errorf("got %s, want %s (%v)", got, want, err)
		}
	}
}

// twoRows is a data frame of one column, with a row that lacks it.
func twoRows() *api.CodeTable {
	return &api.CodeTable{Columns: []api.CodeColumn{{Name: "a"}}, Rows: [][]json.RawMessage{{json.RawMessage("1")}, {json.RawMessage("2")}, {}}}
}

// TestRunDraining wants a run that the end of the server breaks off not to be told as one
// whose context is lost.
func TestRunDraining(t *testing.T) {
	t.Parallel()
	cut := make(chan struct{})
	run := feed.New(1, func() (api.CodeEvent, error) {
		<-cut
		return api.CodeEvent{}, context.Canceled
	}, func() { close(cut) }, func() {})
	defer run.Close()
	ends, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	lines{w: httptest.NewRecorder(), to: json.NewEncoder(&out)}.follow(ends, run)
	if got, want := out.String(), `"name":"ServiceEnds"`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
