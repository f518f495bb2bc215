package document

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxParts is how many members or elements of one value are looked at one by
// one. In a larger value only the first that is wrong is named.
const maxParts = 1024

// mender finds all that is wrong with a document. Package json tells of the first
// alone, so the mender reads each part of a value that is wrong by itself, in
// the place that it has in the document, and leaves out the parts that fail.
type mender struct {
	problems *Problems
	into     reflect.Type
}

// step is one part of the way to a value: the name of a member, or the number of
// an element.
type step struct {
	name  string
	index int // -1 for a member
}

// part is one member or element of a value.
type part struct {
	step
	value jsontext.Value
}

// mend returns value, which is at a place of the document, without what is wrong
// in it. ok is false if all of it is.
func (m *mender) mend(value jsontext.Value, at []step) (mended jsontext.Value, ok bool) {
	e := m.try(value, at)
	if e == nil {
		return value, true
	}
	deeper := steps(e.JSONPointer)
	if len(deeper) < len(at) {
		return value, true // a list of fixed length, which is wrong only because one part stands alone
	}
	deeper = deeper[len(at):]
	parts, small := partsOf(value)
	if len(deeper) == 0 || !small {
		m.complain(e, append(at, deeper...))
		return nil, false
	}
	before := len(m.problems.fields)
	kept := parts[:0]
	for _, one := range parts {
		v, good := m.mend(one.value, append(at[:len(at):len(at)], one.step))
		if !good && one.index >= 0 {
			v, good = jsontext.Value("null"), true // the elements behind it keep their numbers
		}
		if good {
			kept = append(kept, part{one.step, v})
		}
	}
	if len(m.problems.fields) == before && before < maxProblems {
		m.complain(e, append(at, deeper...))
		return nil, false
	}
	return join(value.Kind(), kept), true
}

// try reads value alone, in its place. It returns why it can't be read, or nil.
func (m *mender) try(value jsontext.Value, at []step) *json.SemanticError {
	for i := len(at) - 1; i >= 0; i-- {
		kind := jsontext.Kind('{')
		if at[i].index >= 0 {
			kind = '['
		}
		value = join(kind, []part{{at[i], value}})
	}
	var e *json.SemanticError
	if errors.As(json.Unmarshal(value, reflect.New(m.into).Interface(), strict), &e) {
		return e
	}
	return nil
}

func (m *mender) complain(e *json.SemanticError, at []step) {
	code := "type"
	if errors.Is(e, json.ErrUnknownName) {
		code = "unknown"
	}
	m.problems.Unread(true, nameOf(at), code, "%s", complaint(e))
}

// refill reads the mended document into v. What still can't be read, since a
// type with a reader of its own misses what was taken out, is left out whole.
func (m *mender) refill(v any, mended jsontext.Value) {
	to := reflect.ValueOf(v).Elem()
	to.SetZero()
	if json.Unmarshal(mended, v, strict) == nil {
		return
	}
	to.SetZero()
	parts, _ := partsOf(mended)
	kept := parts[:0]
	for _, one := range parts {
		if m.try(one.value, []step{one.step}) == nil {
			kept = append(kept, one)
		}
	}
	if json.Unmarshal(join(mended.Kind(), kept), v, strict) != nil {
		to.SetZero()
	}
}

// partsOf returns the members or elements of a value; small is false if it has
// too many of them, or is neither an object nor a list.
func partsOf(value jsontext.Value) (parts []part, small bool) {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	kind := value.Kind()
	if _, err := d.ReadToken(); err != nil || kind != '{' && kind != '[' {
		return nil, false
	}
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		one := part{step: step{index: len(parts)}}
		if kind == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, false
			}
			one.step = step{name: name.String(), index: -1}
		}
		v, err := d.ReadValue()
		if err != nil || len(parts) == maxParts {
			return nil, false
		}
		one.value = v.Clone()
		parts = append(parts, one)
	}
	return parts, true
}

// join is the inverse of partsOf.
func join(kind jsontext.Kind, parts []part) jsontext.Value {
	open, end := byte('{'), byte('}')
	if kind == '[' {
		open, end = '[', ']'
	}
	doc := []byte{open}
	for i, one := range parts {
		if i > 0 {
			doc = append(doc, ',')
		}
		if kind == '{' {
			doc, _ = jsontext.AppendQuote(doc, one.name) // it was read from valid JSON
			doc = append(doc, ':')
		}
		doc = append(doc, one.value...)
	}
	return append(doc, end)
}

// steps returns the way that a pointer describes.
func steps(p jsontext.Pointer) (way []step) {
	for token := range p.Tokens() {
		one := step{name: token, index: -1}
		if n, err := strconv.Atoi(token); err == nil {
			one.index = n
		}
		way = append(way, one)
	}
	return way
}

// whole is the name of the document itself.
const whole = "the document"

// nameOf writes a way as volumes[0].host_path.
func nameOf(way []step) string {
	var b strings.Builder
	for _, one := range way {
		switch {
		case one.index >= 0:
			b.WriteString("[" + strconv.Itoa(one.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + one.name)
		default:
			b.WriteString(one.name)
		}
	}
	if b.Len() == 0 {
		return whole
	}
	return b.String()
}
