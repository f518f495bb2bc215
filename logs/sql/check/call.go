package check

import (
	"slices"
	"strings"

	"sandbox/logs/sql/ast"
	"sandbox/logs/sql/parse"
)

// call checks a function, and the arguments that name something.
func (c *checker) call(f *ast.Call, s *scope) {
	if printed, ok := s.lambda(f.Name); ok {
		f.Name = printed
		c.named = true
		if f.Parametric || f.Distinct || f.Filter != nil || f.Nulls != "" || f.Over != nil || f.OverName != "" {
			c.refuse(f.Pos, "a named lambda takes arguments only")
		}
		return
	}
	if c.constant(f) {
		return
	}
	if !isAllowed(f.Name) {
		c.refuse(f.Pos, "the function %s is not allowed", ast.Short(f.Name))
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
var specials = map[string]func(*checker, *ast.Call, *scope){}

func init() { // and not in the declaration: reference looks into the map
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
		specials[strings.ToLower(name)] = func(c *checker, f *ast.Call, _ *scope) { c.typeName(f, 1) }
	}
	for _, name := range []string{"JSONExtract", "JSONExtractCaseInsensitive", "JSONExtractKeysAndValues", "JSONExtractKeysAndValuesCaseInsensitive"} {
		specials[strings.ToLower(name)] = func(c *checker, f *ast.Call, _ *scope) { c.typeName(f, len(f.Args)-1) }
	}
	specials["formatrow"] = (*checker).rowFormat
	specials["throwif"] = (*checker).throwIf
	specials["defaultvalueoftypename"] = func(c *checker, f *ast.Call, _ *scope) { c.typeName(f, 0) }
}

func (c *checker) inCall(f *ast.Call, s *scope) {
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

// reference checks the first argument of such a function, if it has several. The
// engine takes a bare name there for a function, unless a column has that name.
func (c *checker) reference(f *ast.Call, s *scope) {
	if len(f.Args) < 2 {
		return
	}
	n, ok := bare(f.Args[0]).(*ast.Name)
	if !ok {
		return
	}
	name := strings.Join(n.Names(), ".")
	if _, named := s.lambda(name); named {
		return
	}
	if !allowedFunctions.has(name) || s.means(name) || specials[strings.ToLower(name)] != nil || takesZone(name, len(f.Args)-1) {
		c.refuse(f.Pos, "the function %s is not allowed: %s takes a lambda first", ast.Short(name), f.Name)
	}
}

// aggregateName checks the aggregate function that a string names.
func (c *checker) aggregateName(f *ast.Call, _ *scope) {
	text, ok := textArgument(f, 0)
	if !ok {
		c.refuse(f.Pos, "%s takes the name of an aggregate function as a plain string", f.Name)
		return
	}
	named, err := parse.Function(text)
	if err != nil || !isAggregate(named.Name) || slices.ContainsFunc(named.Params, ast.IsVariable) {
		c.refuse(f.Pos, "the aggregate function %s is not allowed", ast.Short(text))
	}
}

// typeName checks the type that a string names.
func (c *checker) typeName(f *ast.Call, at int) {
	text, ok := textArgument(f, at)
	if !ok {
		c.refuse(f.Pos, "%s takes a type as a plain string", f.Name)
		return
	}
	c.typeText(f.Pos, text)
}

func (c *checker) typeText(pos int, text string) {
	t, err := parse.Type(text)
	if err != nil {
		c.refuse(pos, "%s is not a type", ast.Short(text))
		return
	}
	c.typeInText(pos, t)
}

func (c *checker) typeInText(pos int, t *ast.Type) {
	ast.Inspect(t, func(node any) bool {
		if t, ok := node.(*ast.Type); ok {
			c.dataType(pos, t)
		}
		return true
	})
}

// rowFormats are those of formatRow. Other formats read a schema or a template
// from a file that a setting names.
var rowFormats = []string{"CSV", "CSVWithNames", "CSVWithNamesAndTypes", "JSON", "JSONCompact", "JSONCompactEachRow", "JSONEachRow", "JSONStrings",
	"JSONStringsEachRow"}

func (c *checker) rowFormat(f *ast.Call, _ *scope) {
	if format, ok := textArgument(f, 0); !ok || !slices.Contains(rowFormats, format) {
		c.refuse(f.Pos, "%s takes its format as a plain string, one of %s", f.Name, strings.Join(rowFormats, ", "))
	}
}

// throwIf refuses the third argument, which is the number of the failure where a
// setting of the engine allows it: the failure would be taken for another.
func (c *checker) throwIf(f *ast.Call, _ *scope) {
	if len(f.Args) > 2 {
		c.refuse(f.Pos, "%s takes a condition and a message", f.Name)
	}
}

func textArgument(f *ast.Call, at int) (string, bool) {
	if at < 0 || at >= len(f.Args) {
		return "", false
	}
	l, ok := bare(f.Args[at]).(*ast.Literal)
	if !ok || l.Form != ast.Text {
		return "", false
	}
	return l.Value, true
}

// values checks the columns that values('a UInt8, b String', ...) names. The first
// argument must be a constant, as nothing else can be read here.
func (c *checker) values(f *ast.Call) {
	if f.Name != "values" || len(f.Args) < 2 {
		return
	}
	if ast.IsVariable(bare(f.Args[0])) {
		c.refuse(f.Pos, "the first argument of values must be a constant")
	}
	text, ok := textArgument(f, 0)
	if !ok {
		return // a value, not a list of columns
	}
	columns, err := parse.Columns(text)
	if err != nil || !c.columns(f.Pos, columns) {
		c.refuse(f.Pos, "%s is not a list of columns", ast.Short(text))
	}
}

// columns checks types, and reports whether each has a name.
func (c *checker) columns(pos int, columns []ast.TypeArg) bool {
	for _, column := range columns {
		if column.Name == "" || column.Type == nil {
			return false
		}
		c.typeInText(pos, column.Type)
	}
	return true
}
