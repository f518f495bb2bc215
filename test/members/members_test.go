package members_test

import (
	"fmt"
	"slices"
	"testing"

	"sandbox/test/members"
)

// failures is a test that keeps what it is told.
type failures struct {
	testing.TB
	text []string
}

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.text = append(f.text, fmt.Sprintf(format, args...))
}

// Every member that differs is named, and no other.
func TestEqual(t *testing.T) {
	t.Parallel()
	type word string
	three, f := 3, &failures{TB: t}
	members.Equal(f, "a box", members.Of{
		"same":      {word("x"), "x"},
		"number":    {int64(3), 3},
		"pointer":   {&three, 3},
		"none":      {(*int)(nil), nil},
		"list":      {[]string{"a"}, []string{"a"}},
		"status":    {word("x"), "y"},
		"exit code": {(*int)(nil), 3},
	})
	want := []string{"a box: exit code is <nil>, want 3", `a box: status is "x", want "y"`}
	if !slices.Equal(f.text, want) {
		t.Errorf("got %q, want %q", f.text, want)
	}
}
