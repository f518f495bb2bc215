package main

import (
	"slices"
	"strings"
	"testing"
)

const source = `package p

// Told is documented.
type Told struct{}

type Untold[T any] struct{}

// Named has a comment.
func (u *Untold[T]) Named() {
}

func (Told) Unnamed() {}

type hidden struct{}

func (hidden) Unseen() {}

// Kinds of something.
const (
	One = 1
	Two = 2
)

var Bare, Exposed = 1, 2

type (
	Beside int // what stands beside it counts
	Silent int
)
`

func TestSurvey(t *testing.T) {
	t.Parallel()
	s := &survey{}
	for path, text := range map[string]string{
		"p/p.go": source, "p/p_test.go": "package p\n", "test/q/q.go": "package q\n\nfunc F() {}\n",
		"p/long.go": "package p\n\nfunc long() {\n" + strings.Repeat("\tlong()\n", 59) + "}\n",
	} {
		if err := s.add(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := sizes(s.functions); !slices.Equal(got, []int{1, 1, 2, 61}) {
		t.Errorf("the functions have %v lines", got)
	}
	if s.tests != 4 || s.code != strings.Count(source, "\n")+63 || len(s.files) != 2 {
		t.Errorf("got %d lines of tests, %d of code in %v", s.tests, s.code, s.files)
	}
	var names []string
	for _, u := range s.undocumented {
		names = append(names, u[strings.LastIndex(u, " ")+1:])
	}
	if want := []string{"Bare", "Exposed", "Silent", "Unnamed", "Untold"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("without a comment are %v, want %v", names, want)
	}
	if s.exported != 10 {
		t.Errorf("got %d exported names, want 10", s.exported)
	}
	if over := strings.Join(s.over(), "\n"); !strings.Contains(over, "p/long.go:3: long has 61 lines") {
		t.Errorf("the long function is not named in:\n%s", over)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ p, want int }{{50, 2}, {90, 4}, {100, 4}, {25, 1}} {
		if got := percentile([]int{1, 2, 3, 4}, c.p); got != c.want {
			t.Errorf("percentile %d is %d, want %d", c.p, got, c.want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("the median of nothing is %d", got)
	}
}
