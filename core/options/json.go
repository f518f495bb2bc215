package options

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// DecodeArgs reads a JSON array of strings. Errors: Malformed.
func DecodeArgs(doc []byte) ([]string, error) {
	var list []text
	p := document.Problems{Prefix: "invalid arguments JSON: "}
	if err := p.Read(doc, &list, MaxDocument); err != nil {
		return nil, err
	}
	return append([]string{}, plain(list)...), p.Err(fault.Malformed)
}

// DecodeEnv reads a JSON array of [key, value] pairs, or an object. Errors: Malformed.
func DecodeEnv(doc []byte) (map[string]string, error) {
	var e env
	p := document.Problems{Prefix: "invalid environment JSON: "}
	if err := p.Read(doc, &e, MaxDocument); err != nil {
		return nil, err
	}
	return e, p.Err(fault.Malformed)
}

// text is a string. Unlike one of package json, it is not read from null, so that
// a null in a list is told in its place.
type text string

// UnmarshalJSONFrom implements the interface through which package json reads t.
func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '"' {
		return errText
	}
	return json.UnmarshalDecode(dec, (*string)(t))
}

// plain returns texts as strings.
func plain(list []text) (all []string) {
	for _, t := range list {
		all = append(all, string(t))
	}
	return all
}

// object is a map of strings. It is read from a JSON object.
type object map[string]string

// UnmarshalJSONFrom implements the interface through which package json reads o.
func (o *object) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var members map[string]text
	if err := json.UnmarshalDecode(dec, &members); err != nil {
		return err
	}
	*o = object{}
	for name, value := range members {
		(*o)[name] = string(value)
	}
	return nil
}

// env is an environment. It is read from a list of [key, value] pairs or from
// an object.
type env map[string]string

// UnmarshalJSONFrom implements the interface through which package json reads
// e.
func (e *env) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '{':
		return (*object)(e).UnmarshalJSONFrom(dec)
	case '[':
	default:
		return errEnv
	}
	var pairs []pair
	if err := json.UnmarshalDecode(dec, &pairs); err != nil {
		return err
	}
	*e = env{}
	for _, p := range pairs {
		(*e)[p.key] = p.value
	}
	return nil
}

// pair is a variable of an environment. It is read from a list of two strings.
type pair struct{ key, value string }

// UnmarshalJSONFrom implements the interface through which package json reads p.
func (p *pair) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return errPair
	}
	var both []text
	if err := json.UnmarshalDecode(dec, &both); err != nil {
		return err
	}
	if len(both) != 2 {
		return errPair
	}
	p.key, p.value = string(both[0]), string(both[1])
	return nil
}

// These errors say what is wrong with a value, where package json could only
// name a Go type.
const (
	errText    document.Complaint = "must be a string"
	errPair    document.Complaint = "must be a [key, value] pair of strings"
	errEnv     document.Complaint = "must be a list of [key, value] pairs of strings, or an object of strings"
	errCommand document.Complaint = "must be a list of strings, or one string"
)
