package document

import (
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/fault"
)

// MaxSize is how many bytes a document may have that is not said to be larger.
const MaxSize = 1 << 20

// Read reads a whole document of at most MaxSize bytes into v, a pointer.
// Errors: Malformed, with fields.
func Read(doc []byte, v any) error {
	var p Problems
	if err := p.Read(doc, v, MaxSize); err != nil {
		return err
	}
	return p.Err(fault.Malformed)
}

// Read reads a whole document of at most most bytes into v, a pointer. It notes
// all members that are unknown or of the wrong type, and leaves them out of v, so
// that the caller can check the others. Members are told apart by case; a
// duplicate one, and text that is not UTF-8, means that the document can't be
// read. Errors: Malformed, if the document as a whole can't be read.
func (p *Problems) Read(doc []byte, v any, most int) error {
	if len(doc) > most {
		return fault.New(fault.Malformed, "%smore than the %d bytes allowed", p.Prefix, most)
	}
	if jsontext.Value(doc).Kind() == 'n' { // null, which would leave v as it is
		p.Unread(true, whole, "type", "must be %s", kindName(reflect.TypeOf(v)))
		return p.Err(fault.Malformed)
	}
	first := json.Unmarshal(doc, v, strict)
	if first == nil {
		return nil
	}
	var all jsontext.Value
	if err := json.Unmarshal(doc, &all); err != nil {
		return fault.New(fault.Malformed, "%s%s", p.Prefix, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	m := mender{problems: p, into: reflect.TypeOf(v).Elem()}
	mended, ok := m.mend(all, nil)
	if !ok {
		return p.Err(fault.Malformed)
	}
	m.refill(v, mended)
	return nil
}

// strict refuses members that v has no place for.
var strict = json.RejectUnknownMembers(true)

// A Complaint is the error of a type with a reader of its own, whose text says
// to a client what JSON the type is read from: "must be ...".
type Complaint string

// Error returns the text.
func (c Complaint) Error() string { return string(c) }

// complaint says what is wrong without the names of Go's types.
func complaint(e *json.SemanticError) string {
	var own Complaint
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return "is not a member of this document"
	case errors.As(e.Err, &own):
		return own.Error()
	case e.GoType == nil:
		return "has the wrong type"
	}
	return "must be " + kindName(e.GoType)
}

// kindName says what JSON a Go type is read from.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindName(t.Elem())
	case reflect.Int:
		return "an integer"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
