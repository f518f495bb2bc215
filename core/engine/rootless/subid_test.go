package rootless

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	text := "# comment\nother:100000:65536\nme:165536:65536\n1000:300000:10\nme:0:5\nme:1:0\nme:-1:5\nme:4294967290:100\nme:1\nme:a:b\n\nmeme:7:7"
	own, free := parse([]byte(text), "me", 1000)
	if want := []Span{{165536, 65536}, {300000, 10}}; !reflect.DeepEqual(own, want) || free != 300010 {
		t.Errorf("got %v and %d, want %v and 300010", own, free, want)
	}
	if own, free := parse(nil, "me", 1000); own != nil || free != firstFree {
		t.Errorf("of nothing: %v, %d", own, free)
	}
}

func TestEnough(t *testing.T) {
	for _, test := range []struct{ spans, want []Span }{
		{nil, nil},
		{[]Span{{100, Subordinates - 1}}, nil},
		{[]Span{{100, Subordinates}}, []Span{{100, Subordinates}}},
		{[]Span{{100, Subordinates + 1}, {1, 1}}, []Span{{100, Subordinates}}},
		{[]Span{{100, 5}, {200_000, Subordinates}}, []Span{{100, 5}, {200_000, Subordinates - 5}}},
	} {
		if got := enough(test.spans); !reflect.DeepEqual(got, test.want) {
			t.Errorf("of %v: %v, want %v", test.spans, got, test.want)
		}
	}
}

func TestMapping(t *testing.T) {
	got := strings.Join(mapping(7, 1000, []Span{{100, 5}, {200_000, 3}}), " ")
	if want := "7 0 1000 1 1 100 5 6 200000 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseGroups(t *testing.T) {
	got := ParseGroups("12:cpu,cpuacct:/a/b\n1:name=systemd:/s:c\n0::/u\nrubbish\n")
	want := map[string]string{"cpu,cpuacct": "/a/b", "cpu": "/a/b", "cpuacct": "/a/b", "name=systemd": "/s:c", "": "/u"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// FuzzParse wants ranges that are ranges, and a proposal that overlaps with none.
func FuzzParse(f *testing.F) {
	f.Add([]byte("me:100000:65536\n1000:1:2\nyou:9:9\n"))
	f.Add([]byte("me:4294967295:1\nme::\n:::\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		own, free := parse(text, "me", 1000)
		for _, s := range own {
			if s.Start <= 0 || s.Count <= 0 || s.Start+s.Count > math.MaxUint32 || s.Start+s.Count > free {
				t.Errorf("%v with %d free", s, free)
			}
		}
		total := 0
		for _, s := range enough(own) {
			total += s.Count
		}
		if total != 0 && total != Subordinates {
			t.Errorf("%d ids", total)
		}
	})
}
