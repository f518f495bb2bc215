package code

import (
	"encoding/base64"
	stdjson "encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"sandbox/api"
)

// frame is an answer of a kernel. Only the members of its kind are set.
type frame struct {
	Kind   string          `json:"kind"`
	Count  int             `json:"count"`  // of begin: how many runs there were, with this one
	Result *api.CodeResult `json:"result"` // of result
	Error  *api.CodeError  `json:"error"`  // of error
	Status api.CodeStatus  `json:"status"` // of end
}

// The kinds of frames.
const (
	frameBegin  = "begin"
	frameResult = "result"
	frameError  = "error"
	frameEnd    = "end"
)

// readFrame reads an answer of a kernel. All of its texts are UTF-8. Errors: Engine (the
// kernel broke the protocol).
func readFrame(doc []byte) (frame, error) {
	var f frame
	err := json.Unmarshal(doc, &f)
	if err != nil { // perhaps only for characters that no text may have
		f = frame{}
		if doc, err = mend(doc); err == nil {
			err = json.Unmarshal(doc, &f)
		}
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return frame{}, errProtocol("%.100v", err)
	}
	return f, nil
}

// mend returns a document with U+FFFD in place of halves of characters, which languages
// with UTF-16 texts have, and with the last of members of the same name.
func mend(doc []byte) ([]byte, error) {
	dec := stdjson.NewDecoder(strings.NewReader(string(doc)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return stdjson.Marshal(v)
}

func (f frame) check() error {
	switch f.Kind {
	case frameBegin:
		return must(f.Count > 0, "a run without a number")
	case frameResult:
		return must(f.Result != nil && inBase64(f.Result.PNG, f.Result.JPEG, f.Result.PDF), "a result without data, or whose data is not base64")
	case frameError:
		return must(f.Error != nil, "an error without data")
	case frameEnd:
		return must(f.Status == api.CodeSucceeded || f.Status == api.CodeFailed || f.Status == api.CodeInterrupted, "an end without a status")
	}
	return must(false, "an answer of an unknown kind")
}

func must(holds bool, otherwise string) error {
	if holds {
		return nil
	}
	return errors.New(otherwise)
}

func inBase64(texts ...*string) bool {
	for _, text := range texts {
		if text == nil {
			continue
		}
		if _, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding.Strict(), strings.NewReader(*text))); err != nil || strings.ContainsAny(*text, "\r\n") {
			return false
		}
	}
	return true
}
