// Package sql is the gate through which a caller's SQL reaches an engine. An
// engine can read files, connect to hosts and change data, and it may read a text
// otherwise than we do. So no text of a caller's is ever sent to one. Three walls
// stand between them, one behind the other:
//
//   - Package parse reads the statement with a complete parser of our own for
//     SELECT. What it can't read as the engine would is refused, and so is every
//     other kind of statement.
//   - Package check walks the tree against an allow-list: one table, functions
//     that compute from their arguments alone, plain types. What is not on the
//     list is refused, also when a later engine adds it.
//   - Package print writes the tree as text anew, and that text is what the
//     engine gets. A comment, an encoding or a quote that the engine would read
//     otherwise than we do does not survive it.
//
// Package ast holds the tree between them. [Read] is the one door.
package sql

import (
	"fmt"
	"strings"

	"sandbox/logs/sql/ast"
	"sandbox/logs/sql/check"
	"sandbox/logs/sql/parse"
	"sandbox/logs/sql/print"
)

// A Statement is what may be sent to the engine.
type Statement struct {
	SQL    string
	Params []Param // the placeholders in SQL, each once, in order
}

// A Param is a placeholder: a value must be given for its name.
type Param struct{ Name, Type string }

// An Error says why a statement was refused, and where.
type Error = ast.Error

// A TableName is a name for the log table, beside those that always mean it.
type TableName = check.TableName

// ParseTableName reads "TABLE" or "DATABASE.TABLE", in plain letters, digits and _.
func ParseTableName(s string) (TableName, error) {
	db, name, qualified := strings.Cut(s, ".")
	if !qualified {
		db, name = "", s
	}
	if !ast.IsPlain(name) || qualified && !ast.IsPlain(db) {
		return TableName{}, fmt.Errorf("%q can't be the name of a table: want TABLE or DATABASE.TABLE", s)
	}
	return TableName{Database: db, Name: name}, nil
}

// Read reads a caller's text and returns the statement to send in its place. Each
// of tables means the log table in it, too. The error is an *Error. Any number of
// goroutines may call it at the same time.
func Read(source string, tables ...TableName) (Statement, error) {
	q, err := parse.Query(source)
	if err != nil {
		return Statement{}, err
	}
	if err := check.Query(q, source, tables...); err != nil {
		return Statement{}, err
	}
	s := Statement{SQL: print.Query(q), Params: params(q)}
	if len(s.SQL) > print.MaxLength {
		return Statement{}, ast.ErrorAt(source, 0, "the statement is too long once its names are written out")
	}
	return s, nil
}

// params lists the placeholders, each name once.
func params(q *ast.Query) []Param {
	var all []Param
	seen := map[string]bool{}
	ast.Inspect(q, func(node any) bool {
		if h, ok := node.(*ast.Placeholder); ok && !seen[h.Name] {
			seen[h.Name] = true
			all = append(all, Param{Name: h.Name, Type: h.Type.String()})
		}
		return true
	})
	return all
}

// QuoteName returns a name as every engine reads it as the same bytes.
func QuoteName(s string) string { return ast.QuoteName(s) }
