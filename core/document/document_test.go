package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/core/document"
	"sandbox/core/fault"
)

type inner struct {
	Name *string `json:"name"`
	Size *int    `json:"size"`
}

type outer struct {
	Text  *string           `json:"text"`
	Count *int              `json:"count"`
	On    *bool             `json:"on"`
	List  *[]inner          `json:"list"`
	Words []*string         `json:"words"`
	Map   map[string]string `json:"map"`
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		doc    string
		fields []string
	}{
		"right":            {`{"text":"a","list":[{"name":"b"}]}`, nil},
		"two unknown":      {`{"x":1,"text":"a","y":{"z":2}}`, []string{"x", "y"}},
		"unknown and type": {`{"x":1,"text":2,"count":"3","on":1}`, []string{"x", "text", "count", "on"}},
		"in elements":      {`{"list":[{"name":1},{"name":"b","size":1.5,"q":0},7]}`, []string{"list[0].name", "list[1].size", "list[1].q", "list[2]"}},
		"in a list":        {`{"words":["a",1,"b",{}]}`, []string{"words[1]", "words[3]"}},
		"in a map":         {`{"map":{"a":1,"b":"c","d":[]}}`, []string{"map.a", "map.d"}},
		"a list":           {`[]`, []string{"the document"}},
		"null":             {`null`, []string{"the document"}},
		"cut off":          {`{"x":1,"text":`, nil},
		"a member twice":   {`{"x":1,"text":"a","text":"b"}`, nil},
		"not UTF-8":        {"{\"x\":1,\"text\":\"\xff\"}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v outer
			err := document.Read([]byte(tt.doc), &v)
			if (err == nil) != (name == "right") || err != nil && !fault.Is(err, fault.Malformed) {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				return
			}
			var fields []string
			for _, f := range fault.Of(err).Fields {
				fields = append(fields, f.Field)
			}
			if !slices.Equal(fields, tt.fields) {
				t.Errorf("got %q, want %q", fields, tt.fields)
			}
		})
	}
}

// TestTogether wants what can be read to be checked beside what can't, and
// nothing to be said of the latter but that.
func TestTogether(t *testing.T) {
	t.Parallel()
	var v outer
	p := document.Problems{Prefix: "invalid: "}
	if err := p.Read([]byte(`{"x":1,"text":2,"count":-3,"list":[{"name":1,"size":9},{}]}`), &v, document.MaxSize); err != nil {
		t.Fatal(err)
	}
	p.Required("text", v.Text != nil)
	p.Required("on", v.On != nil)
	p.Within("count", *v.Count, 0, 1)
	for i, e := range *v.List {
		p.Required(fmt.Sprintf("list[%d].name", i), e.Name != nil)
	}
	p.When(true, "list", "too_many", "has too many")
	f := fault.Of(p.Err(fault.InvalidArgument))
	const want = "invalid: x is not a member of this document; text must be a string; list[0].name must be a string; " +
		"on is missing; count is -3 and must be at least 0; list[1].name is missing"
	if f.Kind != fault.Malformed || f.Message != want {
		t.Errorf("got %v: %s\nwant %s", f.Kind, f.Message, want)
	}
	if *(*v.List)[0].Size != 9 {
		t.Error("what stands beside a wrong member is lost")
	}
}

// TestHostile bounds what a document can cost that is wrong in as many places as
// it has room for.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"members":  `{` + members(60_000) + `}`,
		"elements": `{"list":[` + strings.TrimSuffix(strings.Repeat("1,", 500_000), ",") + `]}`,
		"deep":     `{"list":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
		"nested":   `{"list":[` + strings.TrimSuffix(strings.Repeat(`{"name":[1,2,3]},`, 1000), ",") + `]}`,
	} {
		start := time.Now()
		err := document.Read([]byte(doc), new(outer))
		if f := fault.Of(err); f == nil || len(f.Fields) == 0 || len(f.Fields) > 100 {
			t.Errorf("%s: got %.300v", name, err)
		}
		t.Logf("%s: %v", name, time.Since(start))
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return b.String()[1:]
}
