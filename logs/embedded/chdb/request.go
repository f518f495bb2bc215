package chdb

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// maxStatement bounds the text of a statement. The parser's own limit is far
// below it. Data that follow an INSERT are not bounded.
const maxStatement = 1 << 20

// request is a statement in the form of ClickHouse's HTTP interface. Its text
// is in the parameter "query", in the body, or begins in the parameter and
// continues in the body.
type request struct {
	sql      string
	format   string // of the result, or of the data of an INSERT
	data     io.Reader
	id       string
	params   []parameter
	settings []string // "--name=value"
}

// passedOver are parameters of the URL that are no settings of the engine. They
// are ignored, either because they are read elsewhere or because they concern
// only a server with users and sessions.
var passedOver = []string{"query", "query_id", "default_format", "database", "wait_end_of_query", "quota_key", "buffer_size",
	"client_protocol_version", "http_write_exception_in_output_format", "send_progress_in_http_headers",
	"cancel_http_readonly_queries_on_client_close", "log_comment"}

// refused are parameters that can't be ignored, because the answer would be
// wrong.
var refused = []string{"session_id", "compress", "decompress", "role", "stacktrace"}

// insertText splits "INSERT INTO t (a, b) FORMAT F", which data follow, into
// the statement and the format.
func insertText(sql string) (statement, format string, ok bool) {
	sql = strings.TrimRight(sql, " \t\r\n;")
	at := strings.LastIndexAny(sql, " \t\r\n")
	if at < 0 || !hasWord(sql, "INSERT") {
		return "", "", false
	}
	statement, format = strings.TrimSpace(sql[:at]), sql[at+1:]
	cut := len(statement) - len("FORMAT")
	if cut <= 0 || !strings.EqualFold(statement[cut:], "FORMAT") || !strings.ContainsAny(statement[cut-1:cut], " \t\r\n)") {
		return "", "", false
	}
	return strings.TrimSpace(statement[:cut]), format, true
}

// hasWord reports whether text begins with a word.
func hasWord(text, word string) bool {
	fields := strings.Fields(text)
	return len(fields) > 0 && strings.EqualFold(fields[0], word)
}

// read parses a request.
func (s *server) read(r *http.Request) (request, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return request{}, fail(codeBadArguments, "BAD_ARGUMENTS", "the URL can't be read: %v", err)
	}
	q := request{sql: values.Get("query"), format: values.Get("default_format"), id: values.Get("query_id")}
	if q.format == "" {
		q.format = "TabSeparated"
	}
	if q.id == "" {
		q.id = uuid.NewString()
	}
	if err := s.arguments(&q, values); err != nil {
		return request{}, err
	}
	if statement, format, ok := insertText(q.sql); ok && r.Method == http.MethodPost {
		q.sql, q.format, q.data = statement, format, r.Body
		return q, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxStatement+1))
	if err != nil {
		return request{}, fail(codeBadArguments, "BAD_ARGUMENTS", "the body can't be read: %v", err)
	}
	if len(body) > maxStatement {
		return request{}, fail(codeSyntax, "SYNTAX_ERROR", "the statement has more than %d bytes", maxStatement)
	}
	q.sql = strings.TrimSpace(q.sql + "\n" + string(body))
	return q, nil
}

// arguments divides the URL's parameters into parameters of the statement and
// settings of the engine.
func (s *server) arguments(q *request, values url.Values) error {
	for name, list := range values {
		value := list[len(list)-1]
		if strings.ContainsRune(value, 0) && name != "query" {
			return fail(codeBadArguments, "BAD_ARGUMENTS", "%s has a NUL in it: write it as \\0", name)
		}
		param, isParam := strings.CutPrefix(name, "param_")
		switch {
		case isParam:
			q.params = append(q.params, parameter{param, value})
		case slices.Contains(passedOver, name):
		case slices.Contains(refused, name) && value != "" && value != "0":
			return fail(codeNotImplemented, "NOT_IMPLEMENTED", "the embedded engine has no %s", name)
		case slices.Contains(refused, name):
		case !s.settings[name]:
			return fail(codeUnknownSetting, "UNKNOWN_SETTING", "unknown setting '%s'", name)
		default:
			q.settings = append(q.settings, "--"+name+"="+value)
		}
	}
	return nil
}

// limited reports whether the request may only read.
func (q request) limited() bool {
	return slices.Contains(q.settings, "--readonly=1") || slices.Contains(q.settings, "--readonly=2")
}
