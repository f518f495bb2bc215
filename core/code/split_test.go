package code

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"sandbox/api"
	"sandbox/core/fault"
)

// found is what a splitter found.
type found struct {
	printed bytes.Buffer
	frames  []string
	frame   []byte
}

func (f *found) text(p []byte) { f.printed.Write(p) }

func (f *found) piece(body []byte, last bool) error {
	f.frame = append(f.frame, body...)
	if last {
		f.frames, f.frame = append(f.frames, string(f.frame)), nil
	}
	return nil
}

var testMark = append([]byte{markByte}, strings.Repeat("n", nonceSize)...)

func pieceOf(body, more string) string {
	return fmt.Sprintf("%s%04x%s%s", testMark, len(body), more, body)
}

// splitIn gives a splitter the stream in pieces of n bytes.
func splitIn(stream string, n int) (*found, error) {
	var f found
	s := splitter{mark: testMark}
	for len(stream) > 0 {
		m := min(n, len(stream))
		if err := s.split([]byte(stream[:m]), &f); err != nil {
			return &f, err
		}
		stream = stream[m:]
	}
	f.text(s.rest())
	return &f, nil
}

func TestSplit(t *testing.T) {
	t.Parallel()
	other := "\x1e" + strings.Repeat("n", nonceSize-1) + "m0000."
	for stream, want := range map[string][2]string{
		"":        {"", ""},
		"printed": {"printed", ""},
		"a" + pieceOf("{}", ".") + "b" + pieceOf("", "."):          {"ab", "{};"},
		pieceOf("1", "+") + "between" + pieceOf("2", ".") + "\x1e": {"between\x1e", "12"},
		other + other:                              {other + other, ""},
		"\x1e\x1e" + pieceOf("x", "."):             {"\x1e\x1e", "x"},
		string(testMark[:20]):                      {string(testMark[:20]), ""},
		pieceOf(strings.Repeat("y", maxBody), "."): {"", strings.Repeat("y", maxBody)},
	} {
		for n := range 50 {
			got, err := splitIn(stream, n+1)
			if err != nil || got.printed.String() != want[0] || strings.Join(got.frames, ";") != strings.TrimSuffix(want[1], ";")+strings.Repeat(";", strings.Count(want[1], ";")) {
				t.Errorf("%q by %d: %q and %q, %v", stream, n+1, got.printed.String(), got.frames, err)
			}
		}
	}
	for _, stream := range []string{string(testMark) + "zzzz.", string(testMark) + "0000x", fmt.Sprintf("%s%04x.", testMark, maxBody+1), string(testMark) + "-001."} {
		if _, err := splitIn(stream, 1000); !fault.Is(err, fault.Engine) {
			t.Errorf("%q: %v", stream, err)
		}
	}
}

func TestReadFrame(t *testing.T) {
	t.Parallel()
	for doc, ok := range map[string]bool{
		`{"kind":"begin","count":1}`:                         true,
		`{"kind":"begin"}`:                                   false,
		`{"kind":"end","status":"succeeded","later":1}`:      true,
		`{"kind":"end","status":"lost"}`:                     false,
		`{"kind":"result","result":{"png":"aGk="}}`:          true,
		`{"kind":"result","result":{"png":"aGk"}}`:           false,
		`{"kind":"result","result":{"png":"aG\nk="}}`:        false,
		`{"kind":"result","result":{"png":"aG\\nk="}}`:       false,
		`{"kind":"result","result":{"text":1}}`:              false,
		`{"kind":"result"}`:                                  false,
		`{"kind":"error"}`:                                   false,
		`{"kind":"error","error":{"name":"\ud800"}}`:         true,
		`{"kind":"other"}`:                                   false,
		`{"kind":"result","result":{"json":{"a":1,"a":2}}}`:  true,
		`{"kind":"begin","count":1} {}`:                      false,
		`[]`:                                                 false,
		``:                                                   false,
		"{\"kind\":\"error\",\"error\":{\"name\":\"\xff\"}}": true,
		`{"kind":"result","result":{"json":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}`: false,
	} {
		if f, err := readFrame([]byte(doc)); (err == nil) != ok || err != nil && !fault.Is(err, fault.Engine) {
			t.Errorf("%.60s: %+v, %v", doc, f, err)
		}
	}
}

// FuzzKernel reads what a hostile box may answer: nothing of it may do more than end the
// run, and what is read must be fit to be passed on.
func FuzzKernel(f *testing.F) {
	f.Add([]byte("text"+pieceOf(`{"kind":"begin","count":1}`, ".")), 3)
	f.Add([]byte(pieceOf(`{"kind":"result","result":{"is_main":true,"json":[1]}}`, ".")), 100)
	f.Add([]byte(pieceOf(`{"kind":"error","error":{"name":"\ud800"}}`, "+")+pieceOf("", ".")), 7)
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		got, err := splitIn(string(stream), max(1, n))
		if err == nil && !bytes.Contains(stream, testMark) && !bytes.Equal(got.printed.Bytes(), stream) {
			t.Errorf("%q became %q", stream, got.printed.Bytes())
		}
		for _, doc := range got.frames {
			frame, err := readFrame([]byte(doc))
			if err != nil {
				continue
			}
			if _, err := encodeEvent(api.CodeEvent{Type: api.CodeShown, Result: frame.Result, Error: frame.Error}); err != nil {
				t.Errorf("%q can't be passed on: %v", doc, err)
			}
		}
	})
}

// encodeEvent writes an event as strictly as the server does.
func encodeEvent(e api.CodeEvent) ([]byte, error) { return json.Marshal(e, json.Deterministic(true)) }
