package chdb

import (
	"errors"
	"testing"
)

func TestInsertText(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string][2]string{
		"INSERT INTO t FORMAT CSV":                {"INSERT INTO t", "CSV"},
		"insert into t (a, b) format JSONEachRow": {"insert into t (a, b)", "JSONEachRow"},
		"\n INSERT\tINTO t\nFORMAT\nNative ;\n":   {"INSERT\tINTO t", "Native"},
		"INSERT INTO t (a)FORMAT CSV":             {"INSERT INTO t (a)", "CSV"},
		"INSERT INTO t VALUES (1)":                {},
		"INSERT INTO t SELECT 1 AS format":        {},
		"INSERT INTO tformat CSV":                 {},
		"SELECT 1 FORMAT CSV":                     {},
		"INSERT":                                  {},
		"FORMAT CSV":                              {},
		"":                                        {},
	} {
		statement, format, ok := insertText(sql)
		if statement != want[0] || format != want[1] || ok != (want[1] != "") {
			t.Errorf("%q: got %q, %q, %v", sql, statement, format, ok)
		}
	}
}

func TestException(t *testing.T) {
	t.Parallel()
	const plain = "Code: 164. DB::Exception: Cannot modify 'x' setting in readonly mode. (READONLY) (version 26.7.2.1)"
	for text, want := range map[string]exception{
		plain: {164, plain},
		"Code: 164. DB::Exception: " + plain + ". (READONLY)":               {164, plain},
		"Code: 62. DB::Exception: Syntax error: 'Code: 1. DB::Exception: '": {62, "Code: 62. DB::Exception: Syntax error: 'Code: 1. DB::Exception: '"},
		"it went wrong": {1002, "Code: 1002. DB::Exception: it went wrong. (UNKNOWN_EXCEPTION)"},
		"Code: many. x": {1002, "Code: 1002. DB::Exception: Code: many. x. (UNKNOWN_EXCEPTION)"},
		"":              {1002, "Code: 1002. DB::Exception: . (UNKNOWN_EXCEPTION)"},
	} {
		var e *exception
		if !errors.As(newException(text), &e) || *e != want {
			t.Errorf("%q: got %+v, want %+v", text, e, want)
		}
	}
}
