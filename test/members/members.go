// Package members compares a document member by member, so that a failing test names
// each one that is wrong.
package members

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// Of says of each member, by a name for people, what it is and what it should be.
// What should hold of a member and is no value is a pair of bool.
type Of map[string][2]any

// Equal reports each member whose two values differ. A pointer counts as what it
// points to, and a number or a text as that, whatever its type.
func Equal(t testing.TB, what string, of Of) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if got, want := plain(of[name][0]), plain(of[name][1]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %#v, want %#v", what, name, got, want)
		}
	}
}

// plain returns the value without pointers, named types and sizes of numbers.
func plain(value any) any {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return nil
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint()) //nolint:gosec // of tests, and small
	case v.CanFloat():
		return v.Float()
	case v.Kind() == reflect.String:
		return v.String()
	}
	return v.Interface()
}
