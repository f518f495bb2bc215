package sql

// maxPrinted is the longest text that an engine reads without being told to
// read more (max_query_size).
const maxPrinted = 256 << 10

// A Statement is what may be sent to the engine.
type Statement struct {
	SQL    string
	Params []Param // the placeholders in SQL, each once, in order
}

// A Param is a placeholder: a value must be given for its name.
type Param struct{ Name, Type string }

// Read reads a caller's text and gives the statement to send in its place.
// The error is an *Error. It is safe for concurrent use.
func Read(source string) (Statement, error) {
	q, err := Parse(source)
	if err != nil {
		return Statement{}, err
	}
	if err := Check(q); err != nil {
		return Statement{}, err
	}
	s := Statement{SQL: q.Print(), Params: q.Params()}
	if len(s.SQL) > maxPrinted {
		return Statement{}, errorAt(source, 0, "the statement is too long once its names are written out")
	}
	return s, nil
}

// Params lists the placeholders, each name once.
func (q *Query) Params() []Param {
	var all []Param
	seen := map[string]bool{}
	walk(q, func(node any) bool {
		if h, ok := node.(*Placeholder); ok && !seen[h.Name] {
			seen[h.Name] = true
			all = append(all, Param{Name: h.Name, Type: printType(h.Type)})
		}
		return true
	})
	return all
}
