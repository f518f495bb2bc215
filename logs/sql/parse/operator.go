package parse

// The strengths of operators, weakest first: an operand goes to the stronger
// side. They are the engine's.
const (
	weakest = iota
	strengthTernary
	strengthOr
	strengthAnd
	strengthNot
	strengthIs
	strengthBetween
	strengthCompare
	strengthConcat
	strengthAdd
	strengthMultiply
	strengthZone
	strengthNegate
	strengthPostfix
)

// A joint is an operator between two operands.
type joint struct {
	words    []string // or one symbol
	op       string   // what is printed
	strength int
}

// Longer ones stand before those that they begin with.
var joints = []joint{
	{[]string{"OR"}, "OR", strengthOr},
	{[]string{"AND"}, "AND", strengthAnd},
	{[]string{"IS", "NOT", "DISTINCT", "FROM"}, "IS NOT DISTINCT FROM", strengthIs},
	{[]string{"IS", "DISTINCT", "FROM"}, "IS DISTINCT FROM", strengthIs},
	{[]string{"<=>"}, "<=>", strengthCompare},
	{[]string{"=="}, "=", strengthCompare},
	{[]string{"="}, "=", strengthCompare},
	{[]string{"!="}, "!=", strengthCompare},
	{[]string{"<>"}, "!=", strengthCompare},
	{[]string{"<="}, "<=", strengthCompare},
	{[]string{">="}, ">=", strengthCompare},
	{[]string{"<"}, "<", strengthCompare},
	{[]string{">"}, ">", strengthCompare},
	{[]string{"LIKE"}, "LIKE", strengthCompare},
	{[]string{"ILIKE"}, "ILIKE", strengthCompare},
	{[]string{"NOT", "LIKE"}, "NOT LIKE", strengthCompare},
	{[]string{"NOT", "ILIKE"}, "NOT ILIKE", strengthCompare},
	{[]string{"REGEXP"}, "REGEXP", strengthCompare},
	{[]string{"IN"}, "IN", strengthCompare},
	{[]string{"NOT", "IN"}, "NOT IN", strengthCompare},
	{[]string{"GLOBAL", "IN"}, "GLOBAL IN", strengthCompare},
	{[]string{"GLOBAL", "NOT", "IN"}, "GLOBAL NOT IN", strengthCompare},
	{[]string{"||"}, "||", strengthConcat},
	{[]string{"+"}, "+", strengthAdd},
	{[]string{"-"}, "-", strengthAdd},
	{[]string{"−"}, "-", strengthAdd},
	{[]string{"*"}, "*", strengthMultiply},
	{[]string{"/"}, "/", strengthMultiply},
	{[]string{"%"}, "%", strengthMultiply},
	{[]string{"MOD"}, "%", strengthMultiply},
	{[]string{"DIV"}, "DIV", strengthMultiply},
}

// comparisons may have ANY or ALL of a query on their right.
var comparisons = map[string]bool{"=": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true, "<=>": true}

// likes are the operators that ESCAPE may follow, and their functions.
var likes = map[string]string{"LIKE": "like", "NOT LIKE": "notLike", "ILIKE": "ilike", "NOT ILIKE": "notILike"}

// chained are the operators that the engine gathers into one function.
var chained = map[string]bool{"AND": true, "OR": true, "||": true}

// followsJoint returns the operator that is next, or nil.
func (p *parser) followsJoint() *joint {
	t := p.peek()
	if !isOperator(t) {
		return nil
	}
	for i := range joints {
		j := &joints[i]
		if t.isSymbol(j.words[0]) || p.follows(j.words...) {
			return j
		}
	}
	return nil
}

// isOperator reports whether an operand before t would go on with it.
func isOperator(t token) bool {
	if t.kind == symbol {
		switch t.value {
		case ",", ")", "]", "}", ";", "(", "{":
			return false
		}
		return true
	}
	for _, w := range []string{"OR", "AND", "IS", "LIKE", "ILIKE", "NOT", "REGEXP", "IN", "GLOBAL", "MOD", "DIV", "BETWEEN"} {
		if t.is(w) {
			return true
		}
	}
	return false
}
