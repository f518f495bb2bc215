package parse_test

import (
	"errors"
	"testing"

	"sandbox/logs/sql/ast"
	"sandbox/logs/sql/parse"
)

// TestType reads types as strings name them: in one way, and to the end.
func TestType(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"UInt8":                       "UInt8",
		" Array( Nullable(String) ) ": "Array(Nullable(String))",
		"double  precision":           "DOUBLE PRECISION",
		"Enum8('a' = -1, 'b' = 2)":    "Enum8('a' = -1, 'b' = 2)",
		"Tuple(a UInt8, String)":      "Tuple(`a` UInt8, String)",
		"JSON(max_dynamic_paths=3)":   "JSON(max_dynamic_paths=3)",
		"UInt8 UInt8":                 "",
		"UInt8 -- comment":            "",
		"Enum8('a\\'b' = 1)":          "",
		"Array(":                      "",
		"1":                           "",
		"":                            "",
	} {
		got, err := parse.Type(text)
		checkError(t, text, err, want == "")
		if err == nil && got.String() != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestFunction(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"sum": 0, "quantiles(0.5, 0.9)": 2, "sum(": -1, "sum x": -1, "1": -1, "": -1} {
		got, err := parse.Function(text)
		checkError(t, text, err, want < 0)
		if err == nil && len(got.Params) != want {
			t.Errorf("%q: %d parameters, want %d", text, len(got.Params), want)
		}
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"a": 0, "a UInt8, b String": 2, "a UInt8 b": -1, "a UInt8,": -1} {
		got, err := parse.Columns(text)
		checkError(t, text, err, want < 0)
		if err == nil && len(got) != want {
			t.Errorf("%q: %d columns, want %d", text, len(got), want)
		}
	}
}

// checkError wants an error with a place in the text, or none.
func checkError(t *testing.T, text string, err error, want bool) {
	t.Helper()
	var e *ast.Error
	if (err != nil) != want || want && (!errors.As(err, &e) || e.Offset > len(text)) {
		t.Errorf("%q: error %v, want one: %t", text, err, want)
	}
}
