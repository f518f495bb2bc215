package record_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
)

// TestCreateKeepsAll checks that a request keeps every value on its way from a
// host process to the shim. It fills each field, at every depth.
func TestCreateKeepsAll(t *testing.T) {
	t.Parallel()
	var asked core.CreateRequest
	n := 0
	fill(t, reflect.ValueOf(&asked).Elem(), &n)
	doc, err := json.Marshal(record.ToWire(asked))
	if err != nil {
		t.Fatal(err)
	}
	var m wire.Create
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	if got := record.FromWire(m); !reflect.DeepEqual(got, asked) {
		t.Errorf("sent %+v, came %+v", asked, got)
	}
	if strings.ToLower(string(doc)) != string(doc) {
		t.Errorf("a member without a name of its own: %s", doc)
	}
}

// fill puts a unique value into each field of v.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value, n)
		v.SetMapIndex(value, value)
	case reflect.String:
		v.SetString(strings.Repeat("x", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a member of kind %s, which this test does not know", v.Kind())
	}
}
