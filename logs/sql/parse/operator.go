package parse

// The precedences of operators, lowest first: an operand between two operators
// belongs to the one of the higher precedence. The order is the engine's.
const (
	lowest = iota
	precedenceTernary
	precedenceOr
	precedenceAnd
	precedenceNot
	precedenceIs
	precedenceBetween
	precedenceCompare
	precedenceConcat
	precedenceAdd
	precedenceMultiply
	precedenceZone
	precedenceNegate
	precedencePostfix
)

// An infix is an operator between two operands.
type infix struct {
	words      []string // the keywords, or one symbol
	op         string   // what is printed
	precedence int
}

// infixes are all such operators. A longer one stands before those that it
// begins with.
var infixes = []infix{
	{[]string{"OR"}, "OR", precedenceOr},
	{[]string{"AND"}, "AND", precedenceAnd},
	{[]string{"IS", "NOT", "DISTINCT", "FROM"}, "IS NOT DISTINCT FROM", precedenceIs},
	{[]string{"IS", "DISTINCT", "FROM"}, "IS DISTINCT FROM", precedenceIs},
	{[]string{"<=>"}, "<=>", precedenceCompare},
	{[]string{"=="}, "=", precedenceCompare},
	{[]string{"="}, "=", precedenceCompare},
	{[]string{"!="}, "!=", precedenceCompare},
	{[]string{"<>"}, "!=", precedenceCompare},
	{[]string{"<="}, "<=", precedenceCompare},
	{[]string{">="}, ">=", precedenceCompare},
	{[]string{"<"}, "<", precedenceCompare},
	{[]string{">"}, ">", precedenceCompare},
	{[]string{"LIKE"}, "LIKE", precedenceCompare},
	{[]string{"ILIKE"}, "ILIKE", precedenceCompare},
	{[]string{"NOT", "LIKE"}, "NOT LIKE", precedenceCompare},
	{[]string{"NOT", "ILIKE"}, "NOT ILIKE", precedenceCompare},
	{[]string{"REGEXP"}, "REGEXP", precedenceCompare},
	{[]string{"IN"}, "IN", precedenceCompare},
	{[]string{"NOT", "IN"}, "NOT IN", precedenceCompare},
	{[]string{"GLOBAL", "IN"}, "GLOBAL IN", precedenceCompare},
	{[]string{"GLOBAL", "NOT", "IN"}, "GLOBAL NOT IN", precedenceCompare},
	{[]string{"||"}, "||", precedenceConcat},
	{[]string{"+"}, "+", precedenceAdd},
	{[]string{"-"}, "-", precedenceAdd},
	{[]string{"−"}, "-", precedenceAdd},
	{[]string{"*"}, "*", precedenceMultiply},
	{[]string{"/"}, "/", precedenceMultiply},
	{[]string{"%"}, "%", precedenceMultiply},
	{[]string{"MOD"}, "%", precedenceMultiply},
	{[]string{"DIV"}, "DIV", precedenceMultiply},
}

// comparisons may have ANY or ALL of a query on their right.
var comparisons = map[string]bool{"=": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true, "<=>": true}

// likes are the operators that ESCAPE may follow, and the functions that they
// become with it.
var likes = map[string]string{"LIKE": "like", "NOT LIKE": "notLike", "ILIKE": "ilike", "NOT ILIKE": "notILike"}

// chained are the operators that the engine turns into one function of all their
// operands.
var chained = map[string]bool{"AND": true, "OR": true, "||": true}

// nextInfix returns the operator that is next, or nil.
func (p *parser) nextInfix() *infix {
	t := p.peek()
	if !isOperator(t) {
		return nil
	}
	for i := range infixes {
		j := &infixes[i]
		if t.isSymbol(j.words[0]) || p.follows(j.words...) {
			return j
		}
	}
	return nil
}

// isOperator reports whether t, behind an operand, begins an operator.
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
