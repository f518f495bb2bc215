// Package ast holds the tree of a SELECT statement, which package parse makes,
// package check resolves and package print writes.
//
// Pos is the place of a node, in bytes from the beginning of the statement. What
// is absent from a statement has the zero value in the tree. A keyword that a node
// keeps as a string is in upper case.
package ast

// A Query is one SELECT, or several joined by UNION, INTERSECT and EXCEPT.
type Query struct {
	Parts []Part
}

// A Part of a query is a SELECT or a query in brackets.
type Part struct {
	Op     string // "UNION ALL", "UNION DISTINCT", ...; empty before the first part
	Select *Select
	Nested *Query
}

// A Select is one SELECT with its clauses. Absent clauses are nil.
type Select struct {
	With       []With
	Recursive  bool
	Distinct   bool
	DistinctOn []Expr
	Items      []Expr
	From       *From
	Prewhere   Expr
	Where      Expr
	GroupBy    *Grouping
	Having     Expr
	Windows    []NamedWindow
	Qualify    Expr
	OrderBy    *Ordering
	LimitBy    *LimitBy
	Limit      Expr
	Offset     Expr
	WithTies   bool

	// Texts are the items as the caller wrote them. There are none in a tree
	// that no parser made.
	Texts []string
}

// With is a named query, or an expression with an alias.
type With struct {
	Pos     int
	Name    string // of the query
	Columns []string
	Query   *Query
	Expr    Expr
}

// A Grouping is GROUP BY.
type Grouping struct {
	All    bool
	Form   string // "", "ROLLUP", "CUBE" or "GROUPING SETS": what is written before the bracket
	Items  []Expr
	Sets   [][]Expr
	Rollup bool // WITH ROLLUP
	Cube   bool
	Totals bool
}

// An Ordering is ORDER BY, of a SELECT or a window.
type Ordering struct {
	All           bool
	Items         []OrderItem // when All, one without an expression
	Interpolate   []Interpolation
	Interpolating bool // INTERPOLATE is there, maybe without a list
}

// An OrderItem is one key of an ordering.
type OrderItem struct {
	Expr    Expr
	Desc    bool
	Nulls   string // "", "FIRST" or "LAST"
	Collate string
	Fill    *Fill
}

// A Fill is WITH FILL.
type Fill struct{ From, To, Step, Staleness Expr }

// An Interpolation names a column and what fills it; Expr may be nil.
type Interpolation struct {
	Column string
	Expr   Expr
}

// LimitBy is LIMIT n BY.
type LimitBy struct {
	Limit, Offset Expr
	All           bool
	Items         []Expr
}

// A NamedWindow is an entry of WINDOW.
type NamedWindow struct {
	Name   string
	Window *Window
}

// A Window is what stands in the brackets after OVER.
type Window struct {
	Base        string // a named window it begins from
	PartitionBy []Expr
	OrderBy     *Ordering
	Frame       *Frame
}

// A Frame is ROWS, RANGE or GROUPS.
type Frame struct {
	Unit       string
	Begin, End *Bound // End is nil without BETWEEN
}

// A Bound is an end of a frame.
type Bound struct {
	Side  string // "CURRENT ROW", "PRECEDING" or "FOLLOWING"
	Value Expr   // nil is UNBOUNDED
}

// From is a table and what is joined to it.
type From struct {
	First *Table
	Joins []Join
}

// A Join is a JOIN, a comma, or an ARRAY JOIN.
type Join struct {
	Natural    bool
	Global     bool
	Strictness string // "", "ANY", "ALL", "ASOF", "SEMI", "ANTI"
	Kind       string // "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "PASTE", ",", "ARRAY", "LEFT ARRAY"
	Table      *Table
	On         Expr
	Using      []Expr
	Arrays     []Expr
}

// A Table is a name, a subquery or a table function, where rows come from.
type Table struct {
	Pos          int
	Database     string
	Name         string
	Query        *Query
	Func         *Call
	Alias        string
	Columns      []string // names for the columns, after the alias
	Final        bool
	Sample       string // "0.1" or "1 / 10"
	SampleOffset string
}
