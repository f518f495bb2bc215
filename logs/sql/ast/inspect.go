package ast

import "reflect"

// Inspect calls visit for x and for every node below it that is held by a
// pointer: expressions, queries, tables, types. Where visit returns false, the
// nodes below are left out. It goes by reflection, so that a field which is
// added to a node can't be forgotten.
func Inspect(x any, visit func(node any) bool) { inspect(reflect.ValueOf(x), visit) }

func inspect(v reflect.Value, visit func(any) bool) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			inspect(v.Elem(), visit)
		}
	case reflect.Pointer:
		if !v.IsNil() && visit(v.Interface()) {
			inspect(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			inspect(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanInterface() { // false for what is not exported
				inspect(field, visit)
			}
		}
	}
}
