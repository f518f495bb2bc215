package sql

import "reflect"

// walk calls visit for every node below and at x that is held by a pointer:
// expressions, queries, tables, types. Where visit gives false it goes no
// deeper. It goes by reflection, so that no field of a node can be forgotten.
func walk(x any, visit func(node any) bool) { walkValue(reflect.ValueOf(x), visit) }

func walkValue(v reflect.Value, visit func(any) bool) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			walkValue(v.Elem(), visit)
		}
	case reflect.Pointer:
		if !v.IsNil() && visit(v.Interface()) {
			walkValue(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkValue(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanInterface() { // is exported
				walkValue(field, visit)
			}
		}
	}
}
