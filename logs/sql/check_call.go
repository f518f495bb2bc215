package sql

import (
	"slices"
	"strings"
)

// call checks a function, and the arguments that name something.
func (c *checker) call(f *Call, s *scope) {
	if printed, ok := s.lambda(f.Name); ok {
		f.Name = printed
		c.named = true
		if f.Parametric || f.Distinct || f.Filter != nil || f.Nulls != "" || f.Over != nil || f.OverName != "" {
			c.refuse(f.Pos, "a named lambda takes arguments only")
		}
		return
	}
	if !isAllowed(f.Name) {
		c.refuse(f.Pos, "the function %s is not allowed", short(f.Name))
		return
	}
	if f.Parametric && !isAggregate(f.Name) {
		c.refuse(f.Pos, "%s takes no parameters", f.Name)
	}
	c.zones(f)
	if special := specials[strings.ToLower(f.Name)]; special != nil {
		special(c, f, s)
	}
}

// specials are the functions with an argument that is more than a value, by
// their names in lower case.
var specials = map[string]func(*checker, *Call, *scope){}

func init() { // the functions refer to the map
	for _, name := range []string{"in", "notIn", "globalIn", "globalNotIn", "nullIn", "notNullIn", "globalNullIn", "globalNotNullIn"} {
		specials[strings.ToLower(name)] = (*checker).inCall
	}
	for _, name := range strings.Fields(higherOrder) {
		specials[strings.ToLower(name)] = (*checker).reference
	}
	for _, name := range []string{"arrayReduce", "arrayReduceInRanges", "initializeAggregation"} {
		specials[strings.ToLower(name)] = (*checker).aggregateName
	}
	for _, name := range []string{"CAST", "accurateCast", "accurateCastOrNull", "accurateCastOrDefault", "reinterpret", "dynamicElement", "variantElement"} {
		specials[strings.ToLower(name)] = func(c *checker, f *Call, _ *scope) { c.typeName(f, 1) }
	}
	for _, name := range []string{"JSONExtract", "JSONExtractCaseInsensitive", "JSONExtractKeysAndValues", "JSONExtractKeysAndValuesCaseInsensitive"} {
		specials[strings.ToLower(name)] = func(c *checker, f *Call, _ *scope) { c.typeName(f, len(f.Args)-1) }
	}
	specials["defaultvalueoftypename"] = func(c *checker, f *Call, _ *scope) { c.typeName(f, 0) }
}

func (c *checker) inCall(f *Call, s *scope) {
	if len(f.Args) != 2 {
		c.refuse(f.Pos, "%s takes two arguments", f.Name)
		return
	}
	c.set(f.Pos, &f.Args[1], s)
}

// higherOrder are the functions that take a lambda first.
const higherOrder = `arrayAll arrayAvg arrayCompact arrayCount arrayCumSum arrayCumSumNonNegative arrayDifference arrayExists arrayFill
	arrayFilter arrayFirst arrayFirstIndex arrayFirstOrNull arrayFold arrayLast arrayLastIndex arrayLastOrNull arrayMap arrayMax arrayMin
	arrayPartialReverseSort arrayPartialSort arrayProduct arrayReverseFill arrayReverseSort arrayReverseSplit arraySort arraySplit arraySum
	mapAll mapApply mapExists mapFilter mapPartialReverseSort mapPartialSort mapReverseSort mapSort`

// reference checks the first of several arguments of such a function. The
// engine takes a name there for a function's, unless a column has it.
func (c *checker) reference(f *Call, s *scope) {
	if len(f.Args) < 2 {
		return
	}
	n, ok := bare(f.Args[0]).(*Name)
	if !ok {
		return
	}
	name := strings.Join(plain(n), ".")
	if _, named := s.lambda(name); named {
		return
	}
	if !allowedFunctions.has(name) || s.means(name) || specials[strings.ToLower(name)] != nil || takesZone(name, len(f.Args)-1) {
		c.refuse(f.Pos, "the function %s is not allowed: %s takes a lambda first", short(name), f.Name)
	}
}

// aggregateName checks an aggregate function that is named by a string.
func (c *checker) aggregateName(f *Call, _ *scope) {
	text, ok := textArgument(f, 0)
	if !ok {
		c.refuse(f.Pos, "%s takes the name of an aggregate function as a plain string", f.Name)
		return
	}
	named, err := parseText(text, func(p *parser) *Call { return p.appliedFunction().(*Call) })
	if err != nil || !isAggregate(named.Name) || slices.ContainsFunc(named.Params, isVariable) {
		c.refuse(f.Pos, "the aggregate function %s is not allowed", short(text))
	}
}

// typeName checks a type that is named by a string.
func (c *checker) typeName(f *Call, at int) {
	text, ok := textArgument(f, at)
	if !ok {
		c.refuse(f.Pos, "%s takes a type as a plain string", f.Name)
		return
	}
	c.typeText(f.Pos, text)
}

func (c *checker) typeText(pos int, text string) {
	t, err := parseText(text, (*parser).dataType)
	if err != nil {
		c.refuse(pos, "%s is no type", short(text))
		return
	}
	c.typeInText(pos, t)
}

func (c *checker) typeInText(pos int, t *Type) {
	walk(t, func(node any) bool {
		if t, ok := node.(*Type); ok {
			c.dataType(pos, t)
		}
		return true
	})
}

func textArgument(f *Call, at int) (string, bool) {
	if at < 0 || at >= len(f.Args) {
		return "", false
	}
	l, ok := bare(f.Args[at]).(*Literal)
	if !ok || l.Form != Text {
		return "", false
	}
	return l.Value, true
}

// values checks the columns that values('a UInt8, b String', ...) names. So
// its first argument must be known here.
func (c *checker) values(f *Call) {
	if f.Name != "values" || len(f.Args) < 2 {
		return
	}
	if isVariable(bare(f.Args[0])) {
		c.refuse(f.Pos, "the first argument of values must be a constant")
	}
	text, ok := textArgument(f, 0)
	if !ok || !strings.ContainsFunc(text, isSpace) {
		return // a value
	}
	columns, err := parseText(text, func(p *parser) []TypeArg { return list(p, p.typeArg) })
	for _, column := range columns {
		if column.Name == "" || column.Type == nil {
			err = errorAt(text, 0, "no column")
			break
		}
		c.typeInText(f.Pos, column.Type)
	}
	if err != nil {
		c.refuse(f.Pos, "%s is no list of columns", short(text))
	}
}
