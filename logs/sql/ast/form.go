package ast

import "strings"

// callForms are the syntaxes by the functions that have them, in lower case.
var callForms = map[string]string{
	"cast": "cast", "exists": "exists", "extract": "extract", "date_part": "date_part", "datepart": "date_part",
	"position": "position", "substring": "substring", "overlay": "overlay", "trim": "trim", "ltrim": "ltrim", "rtrim": "rtrim",
	"date_add": "date_add", "dateadd": "date_add", "timestamp_add": "date_add", "timestampadd": "date_add",
	"date_sub": "date_sub", "datesub": "date_sub", "timestamp_sub": "date_sub", "timestampsub": "date_sub",
	"date_diff": "date_diff", "datediff": "date_diff", "timestamp_diff": "date_diff", "timestampdiff": "date_diff",
}

// CallForm returns the syntax that a function's arguments have of their own, as
// CAST(x AS T) has "cast", or "" for a function with plain arguments. The parser
// reads by it; the printer keeps words in an argument from being read as the
// syntax's.
func CallForm(function string) string { return callForms[strings.ToLower(function)] }
