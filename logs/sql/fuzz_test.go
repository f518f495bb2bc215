package sql_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sandbox/logs/sql"
	"sandbox/logs/sql/ast"
	"sandbox/logs/sql/parse"
	"sandbox/logs/sql/print"
)

// TestPrint wants what is printed to be read as the same tree, over all
// corpora.
func TestPrint(t *testing.T) {
	t.Parallel()
	for _, e := range everything(t) {
		if err := prints(e.sql); err != nil {
			t.Errorf("%s: %s\n%v", e.name, e.sql, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, e := range everything(f) {
		f.Add(e.sql)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := prints(text); err != nil {
			t.Error(err)
		}
		if err := resolves(text); err != nil {
			t.Error(err)
		}
	})
}

// FuzzEngine holds the gate to the engine's own parser: what both read is printed as
// what the engine reads as the same tree.
func FuzzEngine(f *testing.F) {
	e := startEngine(f)
	for _, entry := range everything(f) {
		f.Add(entry.sql)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parse.Query(text)
		if err != nil {
			return
		}
		want, ok := e.post(t, "EXPLAIN AST "+text, "TSVRaw")
		if !ok {
			return // the engine reads less than the gate
		}
		if got, ok := e.post(t, "EXPLAIN AST "+print.Query(q), "TSVRaw"); !ok || got != want {
			t.Errorf("%s\nprinted %s\nwant %s\ngot %s", text, print.Query(q), want, got)
		}
	})
}

func everything(t testing.TB) []entry {
	t.Helper()
	return append(append(corpus(t, "legit"), corpus(t, "grammar")...), corpus(t, "attack")...)
}

// prints wants a statement that can be read to be printed as the same tree.
func prints(text string) error {
	q, err := parse.Query(text)
	if err != nil {
		return placed(text, err)
	}
	printed := print.Query(q)
	again, err := parse.Query(printed)
	if grew(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("printed as %s: %w", printed, err)
	}
	if !same(reflect.ValueOf(q), reflect.ValueOf(again)) {
		return fmt.Errorf("printed as %s\nwhich is read as %s", printed, print.Query(again))
	}
	return nil
}

// grew reports that brackets and quotes took a statement over a bound.
func grew(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "are allowed") || strings.Contains(err.Error(), "in a row"))
}

func placed(text string, err error) error {
	var e *sql.Error
	if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(text) || e.Line < 1 || e.Column < 1 {
		return fmt.Errorf("an error without a place: %w", err)
	}
	return nil
}

// resolves wants a statement that is let through to name nothing but the
// table, named queries and functions of the list.
func resolves(text string) error {
	s, err := sql.Read(text)
	if err != nil {
		return placed(text, err)
	}
	q, err := parse.Query(s.SQL)
	if grew(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.SQL, err)
	}
	return unresolved(reflect.ValueOf(q))
}

func unresolved(v reflect.Value) error {
	switch node := v.Interface().(type) {
	case *ast.Table:
		plain := node != nil && node.Query == nil && node.Func == nil
		if plain && node.Database+"."+node.Name != "otel.otel_logs" && (node.Database != "" || !strings.Contains(node.Name, "/")) {
			return fmt.Errorf("the table %s.%s went through", node.Database, node.Name)
		}
	case *ast.Type:
		if node != nil && strings.Contains(strings.ToLower(node.Name), "aggregate") {
			return fmt.Errorf("the type %s went through", node.Name)
		}
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return unresolved(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := unresolved(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if err := unresolved(v.Field(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// same compares trees without their places and the caller's texts.
func same(a, b reflect.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || a.Elem().Type() == b.Elem().Type() && same(a.Elem(), b.Elem()))
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			f := a.Type().Field(i)
			if f.Name != "Pos" && f.Name != "Texts" && !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}
