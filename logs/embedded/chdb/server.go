// Package chdb implements sandbox-logs, the child process in which the embedded
// log engine runs. It loads libchdb and answers ClickHouse's HTTP interface on
// a socket that it inherits.
package chdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// maxRunning bounds the statements that run at once. Further ones are refused,
// as a server does. The log service lets far fewer through.
const maxRunning = 64

// server runs statements. Each statement gets an engine session of its own. A
// session costs 0.2 ms, and ensures that nothing of a statement is left for the
// next.
type server struct {
	base     []string        // options of every session
	settings map[string]bool // names of all settings of the engine
	hello    []byte          // the answer to the driver's first question

	mu      sync.Mutex
	running map[string]bool // ids of statements

	controlling sync.Mutex // the control session runs one statement at a time
	control     connection
}

// start starts the engine. The control session keeps the engine alive.
func start(options []string) (*server, error) {
	s := &server{base: options, settings: map[string]bool{}, running: map[string]bool{}}
	var err error
	if s.control, err = connect(options); err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	var names [][]string
	if err := s.rows("SELECT name FROM system.settings", &names); err != nil {
		return nil, err
	}
	for _, name := range names {
		s.settings[name[0]] = true
	}
	s.hello, err = s.greeting()
	return s, err
}

// rows runs a statement on the control session and decodes its rows.
func (s *server) rows(sql string, rows any) error {
	s.controlling.Lock()
	defer s.controlling.Unlock()
	r, err := s.control.query(sql, "JSONCompactStrings", nil)
	if err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	defer r.free()
	if rows == nil {
		return nil
	}
	var answer struct{ Data json.RawMessage }
	if err := json.Unmarshal(r.bytes(), &answer); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return json.Unmarshal(answer.Data, rows)
}

// ServeHTTP answers ClickHouse's HTTP interface: a statement on /, and /ping.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ping":
		_, _ = w.Write([]byte("Ok.\n"))
	case "/":
		if err := s.answer(w, r); err != nil {
			writeFailure(w, err)
		}
	default:
		http.NotFound(w, r)
	}
}

func writeFailure(w http.ResponseWriter, err error) {
	var e *exception
	if !errors.As(err, &e) {
		_ = errors.As(fail(codeUnknown, "UNKNOWN_EXCEPTION", "%v", err), &e)
	}
	w.Header().Set("Connection", "close") // otherwise net/http would first wait for the rest of an insert's data
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.code))
	w.WriteHeader(e.status())
	_, _ = w.Write([]byte(e.text + "\n"))
}

// answer runs the statement of a request. It either writes the result or
// returns the failure, never both, because a result is complete before its
// first byte is sent.
func (s *server) answer(w http.ResponseWriter, r *http.Request) error {
	q, err := s.read(r)
	if err != nil {
		return err
	}
	w.Header().Set("X-ClickHouse-Query-Id", q.id)
	if q.format == "Native" && q.data == nil {
		return s.answerNative(w, q)
	}
	if err := s.enter(q.id); err != nil {
		return err
	}
	defer s.leave(q.id)
	c, err := connect(append(append([]string{"--log_comment=" + q.id}, s.base...), q.settings...))
	if err != nil {
		return fail(codeBadArguments, "BAD_ARGUMENTS", "a setting has a value that the engine can't read: %s", strings.Join(q.settings, " "))
	}
	defer c.close()
	if err := q.check(c); err != nil {
		return err
	}
	res, err := s.watched(r.Context(), q.id, func() (result, error) { return q.run(c) })
	if err != nil {
		return err
	}
	defer res.free()
	w.Header().Set("Content-Type", contentType(q.format))
	w.Header().Set("X-ClickHouse-Format", q.format)
	w.Header().Set("X-ClickHouse-Summary", res.summary())
	w.Header().Set("Content-Length", strconv.Itoa(len(res.bytes())))
	_, _ = w.Write(res.bytes()) // an error means that the client is gone
	return nil
}

func contentType(format string) string {
	switch {
	case strings.HasPrefix(format, "JSON"):
		return "application/json; charset=UTF-8"
	case strings.HasPrefix(format, "TabSeparated"), strings.HasPrefix(format, "TSV"):
		return "text/tab-separated-values; charset=UTF-8"
	case strings.HasPrefix(format, "CSV"):
		return "text/csv; charset=UTF-8; header=absent"
	}
	return "application/octet-stream"
}

// enter adds a statement to the running ones, or refuses it if there are too
// many.
func (s *server) enter(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running[id]:
		return fail(codeSameQueryID, "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING", "query with id = %s is already running", id)
	case len(s.running) >= maxRunning:
		return fail(codeTooManyQueries, "TOO_MANY_SIMULTANEOUS_QUERIES", "too many simultaneous queries. Maximum: %d", maxRunning)
	}
	s.running[id] = true
	return nil
}

func (s *server) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, id)
}

// check refuses what a server would not run either. One request may not hold
// several statements, which libchdb would run one after another. A request that
// may only read may not write a file with INTO OUTFILE, which libchdb would do
// although the session is read-only.
func (q request) check(c connection) error {
	if q.data != nil {
		return nil // data that follow the INSERT are not parsed as statements
	}
	statements, kind, err := c.analyze(q.sql)
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(q.sql) == "":
		return fail(codeSyntax, "SYNTAX_ERROR", "Empty query")
	case statements > 1:
		return fail(codeSyntax, "SYNTAX_ERROR", "Multi-statements are not allowed")
	case q.limited() && kind != kindRead && kind != kindUnknown:
		return fail(codeReadonly, "READONLY", "default: Cannot execute query in readonly mode")
	}
	return nil
}

// run runs the statement in a session.
func (q request) run(c connection) (result, error) {
	if q.data == nil {
		return c.query(q.sql, q.format, q.params)
	}
	i, err := c.insert(q.sql, q.format, q.params)
	if err != nil {
		return result{}, err
	}
	defer i.free()
	if err := feed(i, q.data); err != nil {
		i.cancel()
		return result{}, err
	}
	return i.done()
}

// answerNative answers in the driver's binary format, for the driver's first
// question and its ping only. libchdb does not write the protocol revision that
// the driver reads.
func (s *server) answerNative(w http.ResponseWriter, q request) error {
	answer := s.hello
	switch q.sql {
	case "SELECT displayName(), version(), revision(), timezone()":
	case "SELECT 1":
		answer = one()
	default:
		return fail(codeNotImplemented, "NOT_IMPLEMENTED", "the embedded engine does not support the format Native: ask for another")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, err := bytes.NewReader(answer).WriteTo(w)
	return err
}

// watched runs a statement, and kills it when its client disconnects.
func (s *server) watched(ctx context.Context, id string, run func() (result, error)) (result, error) {
	ended := make(chan struct{})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		s.killer(ctx, id, ended)
	}()
	res, err := run()
	close(ended)
	<-killed
	return res, err
}
