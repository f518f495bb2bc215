package options

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// DecodeArgs reads a JSON array of strings. Errors: Malformed.
func DecodeArgs(doc []byte) ([]string, error) {
	var list []*string
	p := document.Problems{Prefix: "invalid arguments JSON: "}
	if err := p.Read(doc, &list, MaxDocument); err != nil {
		return nil, err
	}
	args := make([]string, len(list))
	for i, s := range list {
		p.Unread(s == nil, fmt.Sprintf("[%d]", i), "type", "must be a string")
		args[i] = or(s, "")
	}
	return args, p.Err(fault.Malformed)
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

// env is an environment. It is read from a list of [key, value] pairs or from
// an object.
type env map[string]string

// UnmarshalJSONFrom implements the interface through which package json reads
// e.
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

// These errors say what is wrong with a value, where package json could only
// name a Go type.
const (
	errPair    document.Complaint = "must be a list of [key, value] pairs of strings"
	errObject  document.Complaint = "must be an object of strings"
	errCommand document.Complaint = "must be a list of strings, or one string"
)
