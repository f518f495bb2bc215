package options

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/fault"
)

// DecodeArgs reads a JSON array of strings. Errors: Malformed.
func DecodeArgs(doc []byte) ([]string, error) {
	var list []*string
	if err := decode(doc, &list, "invalid arguments JSON: ", MaxDocument); err != nil {
		return nil, err
	}
	args := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return nil, fault.New(fault.Malformed, "invalid arguments JSON: argument %d must be a string", i)
		}
		args[i] = *s
	}
	return args, nil
}

// DecodeEnv reads a JSON array of [key, value] pairs, or an object. Errors: Malformed.
func DecodeEnv(doc []byte) (map[string]string, error) {
	var e env
	err := decode(doc, &e, "invalid environment JSON: ", MaxDocument)
	return e, err
}

// env reads [key, value] pairs, and an object too.
type env map[string]string

// UnmarshalJSONFrom is what package json calls.
func (e *env) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*e = env{}
	if dec.PeekKind() == '{' {
		err := (*object)(e).UnmarshalJSONFrom(dec)
		if errors.Is(err, errObject) {
			return errPair
		}
		return err
	}
	var pairs [][]*string
	if err := json.UnmarshalDecode(dec, &pairs); err != nil {
		return err
	}
	for _, pair := range pairs {
		if len(pair) != 2 || pair[0] == nil || pair[1] == nil {
			return errPair
		}
		(*e)[*pair[0]] = *pair[1]
	}
	return nil
}

// What is wrong with a value that no Go type says.
var (
	errPair    = errors.New("must be a list of [key, value] pairs of strings")
	errObject  = errors.New("must be an object of strings")
	errCommand = errors.New("must be a list of strings, or one string")
)

// decode reads doc, of at most most bytes, into v. Package encoding/json would take members whatever
// their case, the last of duplicates, and bytes that are not UTF-8; this one,
// which is to become its second version, refuses them.
func decode(doc []byte, v any, prefix string, most int) error {
	if len(doc) > most {
		return fault.New(fault.Malformed, "%smore than the %d bytes allowed", prefix, most)
	}
	if jsontext.Value(doc).Kind() == 'n' { // null, which would leave v as it is
		p := problems{{Field: fieldOf(""), Code: "type", Message: "must be " + kindName(reflect.TypeOf(v))}}
		return p.err(fault.Malformed, prefix)
	}
	err := json.Unmarshal(doc, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return fault.New(fault.Malformed, "%s%s", prefix, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	p := problems{{Field: fieldOf(semantic.JSONPointer), Code: "type", Message: complaint(semantic)}}
	if errors.Is(err, json.ErrUnknownName) {
		p[0].Code = "unknown"
	}
	return p.err(fault.Malformed, prefix)
}

// complaint says what is wrong without naming Go's types.
func complaint(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return "is not a member of this document"
	case errors.Is(e.Err, errPair), errors.Is(e.Err, errObject), errors.Is(e.Err, errCommand):
		return e.Err.Error()
	case e.GoType == nil:
		return "has the wrong type"
	}
	return "must be " + kindName(e.GoType)
}

// fieldOf writes /volumes/0/host_path as volumes[0].host_path.
func fieldOf(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			fmt.Fprintf(&b, "[%s]", token)
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	if b.Len() == 0 {
		return "the document"
	}
	return b.String()
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
