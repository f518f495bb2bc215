package ast

import "slices"

// An Expr is a node of an expression: one of the types of this file.
type Expr interface{ expr() }

type (
	// A Literal is a number, a string, or NULL, true or false. The value of a
	// string is what it means, without quotes and escapes.
	Literal struct {
		Form  Form
		Value string
	}

	// A Name is a column, maybe qualified.
	Name struct {
		Pos   int
		Parts []NamePart
	}

	// A Placeholder is {name:Type}.
	Placeholder struct {
		Pos  int
		Name string
		Type *Type
	}

	// A Star is * or name.*; with Pattern or List it is COLUMNS(...).
	Star struct {
		Of           []string
		Columns      bool
		Pattern      string
		List         []Expr
		Transformers []Transformer
	}

	// A Call is a function. Parametric aggregate functions have Params.
	Call struct {
		Pos        int
		Name       string
		Parametric bool
		Params     []Expr
		Distinct   bool
		Args       []Expr
		Filter     Expr
		Nulls      string // "", "RESPECT" or "IGNORE"
		Over       *Window
		OverName   string
	}

	// A Unary is NOT or a minus.
	Unary struct {
		Op string
		X  Expr
	}

	// A Binary is an operator between two operands.
	Binary struct {
		Pos  int
		Op   string
		L, R Expr
	}

	// A Chain is AND, OR or || between two or more operands. The engine makes one
	// function of them all.
	Chain struct {
		Op    string
		Items []Expr
	}

	// A NullTest is IS NULL.
	NullTest struct {
		X   Expr
		Not bool
	}

	// A Between is BETWEEN.
	Between struct {
		X, Low, High Expr
		Not          bool
	}

	// A Ternary is If ? Then : Else.
	Ternary struct{ If, Then, Else Expr }

	// A Lambda is x -> Body.
	Lambda struct {
		Params []string
		Body   Expr
	}

	// A Cast is CAST(X AS Type) or X::Type.
	Cast struct {
		X    Expr
		Type *Type
	}

	// An Index is X[I].
	Index struct{ X, I Expr }

	// A Member is X.1 or, of anything but a name, X.name.
	Member struct {
		X       Expr
		Name    string
		Numeric bool
	}

	// A Case is CASE. X and Else may be nil.
	Case struct {
		X     Expr
		Whens []When
		Else  Expr
	}

	// A Tuple is (a, b), (a,) or ().
	Tuple struct{ Items []Expr }

	// An Array is [a, b].
	Array struct{ Items []Expr }

	// A Paren keeps the brackets around a literal, an array or a tuple: they
	// can change what stands right of IN.
	Paren struct{ X Expr }

	// A Subquery is a query in brackets, Exists one after EXISTS; after a
	// comparison it may be ANY or ALL of its rows.
	Subquery struct {
		Exists bool
		Of     string // "", "ANY" or "ALL"
		Query  *Query
	}

	// An Alias is X AS Name.
	Alias struct {
		X    Expr
		Name string
	}
)

// A Form tells literals apart.
type Form uint8

// The forms of literals.
const (
	Number Form = iota // inf and nan, too
	Text
	Keyword // NULL, true, false
)

// A NamePart is one part of a name. Mark is "" or, in a column of type JSON,
// "^" (the object below the name) or ":" (the value as the type in Name).
type NamePart struct{ Mark, Name string }

// A When is a pair of a CASE.
type When struct{ If, Then Expr }

// A Transformer is APPLY, EXCEPT or REPLACE after a star.
type Transformer struct {
	Kind    string
	Strict  bool
	Func    Expr   // of APPLY: a Lambda, or a Call without arguments
	Prefix  string // of APPLY
	Names   []string
	Pattern string // of EXCEPT, instead of names
	Items   []Expr // of REPLACE: aliases
}

// String returns the literal as a statement writes it.
func (l *Literal) String() string {
	if l.Form == Text {
		return QuoteText(l.Value)
	}
	return l.Value
}

// Names returns the parts of the name, without their marks.
func (n *Name) Names() []string {
	var all []string
	for _, part := range n.Parts {
		all = append(all, part.Name)
	}
	return all
}

// IsConstant reports whether x is a literal, or a tuple or array of constants.
func IsConstant(x Expr) bool {
	switch x := x.(type) {
	case *Literal:
		return true
	case *Tuple:
		return !slices.ContainsFunc(x.Items, IsVariable)
	case *Array:
		return !slices.ContainsFunc(x.Items, IsVariable)
	case *Paren:
		return IsConstant(x.X)
	default:
		return false
	}
}

// IsVariable reports whether x is no constant.
func IsVariable(x Expr) bool { return !IsConstant(x) }

func (*Literal) expr()     {}
func (*Name) expr()        {}
func (*Placeholder) expr() {}
func (*Star) expr()        {}
func (*Call) expr()        {}
func (*Unary) expr()       {}
func (*Binary) expr()      {}
func (*Chain) expr()       {}
func (*NullTest) expr()    {}
func (*Between) expr()     {}
func (*Ternary) expr()     {}
func (*Lambda) expr()      {}
func (*Cast) expr()        {}
func (*Index) expr()       {}
func (*Member) expr()      {}
func (*Case) expr()        {}
func (*Tuple) expr()       {}
func (*Array) expr()       {}
func (*Paren) expr()       {}
func (*Subquery) expr()    {}
func (*Alias) expr()       {}
