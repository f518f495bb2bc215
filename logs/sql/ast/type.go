package ast

import "strings"

// A Type is a data type.
type Type struct {
	Pos  int
	Name string
	Args []TypeArg
}

// A TypeArg is an argument of a type: a type, maybe of a named element, or a
// literal, maybe with the value of an enumeration.
type TypeArg struct {
	Name    string
	Type    *Type
	Literal *Literal
	Value   *Literal
}

// WordyTypes are the types whose names have several words. A name stands
// before those that it begins with.
var WordyTypes = []string{
	"NATIONAL CHARACTER LARGE OBJECT", "NATIONAL CHARACTER VARYING", "NATIONAL CHARACTER", "NATIONAL CHAR VARYING", "NATIONAL CHAR",
	"NCHAR LARGE OBJECT", "NCHAR VARYING", "CHARACTER LARGE OBJECT", "CHARACTER VARYING", "CHAR LARGE OBJECT", "CHAR VARYING",
	"BINARY LARGE OBJECT", "BINARY VARYING", "DOUBLE PRECISION",
	"TINYINT SIGNED", "TINYINT UNSIGNED", "INT1 SIGNED", "INT1 UNSIGNED", "SMALLINT SIGNED", "SMALLINT UNSIGNED",
	"MEDIUMINT SIGNED", "MEDIUMINT UNSIGNED", "INTEGER SIGNED", "INTEGER UNSIGNED", "INT SIGNED", "INT UNSIGNED",
	"BIGINT SIGNED", "BIGINT UNSIGNED",
}

// String returns the type as a statement writes it.
func (t *Type) String() string {
	if t.Args == nil {
		return t.Name
	}
	args := make([]string, len(t.Args))
	for i, a := range t.Args {
		args[i] = a.String()
	}
	return t.Name + "(" + strings.Join(args, ", ") + ")"
}

// String returns the argument as a statement writes it.
func (a TypeArg) String() string {
	switch {
	case a.Literal != nil && a.Value != nil:
		return a.Literal.String() + " = " + a.Value.Value
	case a.Literal != nil:
		return a.Literal.String()
	case a.Value != nil:
		return a.Name + "=" + a.Value.Value
	case a.Name != "":
		return QuoteName(a.Name) + " " + a.Type.String()
	default:
		return a.Type.String()
	}
}
