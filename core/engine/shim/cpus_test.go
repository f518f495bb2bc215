package shim

import (
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]int{
		"": nil, "0": {0}, "0-2,5": {0, 1, 2, 5}, "3,7-8": {3, 7, 8}, "junk,1": {1}, "4-": nil,
	} {
		if got := parseCPUs(list); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", list, got, want)
		}
	}
}

func TestFilterCPUs(t *testing.T) {
	t.Parallel()
	const one = "processor\t: 0\nmodel name\t: A: B\ncpu MHz\t\t: 2445.4\nflags\t\t: fpu sse\n"
	const two = "processor\t: 1\nflags\t\t: fpu sse\n"
	const none = "Hardware\t: BCM2835\n" // as on arm
	const seen = "processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu sse\n"
	for _, tt := range []struct {
		info string
		cpus []int
		want string
	}{
		{one + "\n" + two + "\n", []int{0}, seen},
		{one + "\n" + two + "\n", []int{1}, two},
		{one + "\n" + two + "\n", []int{0, 1}, seen + "\n" + two},
		{one + "\n" + none, []int{1}, none},
		{"", []int{0}, "\n"},
	} {
		if got := string(filterCPUs([]byte(tt.info), tt.cpus)); got != tt.want {
			t.Errorf("CPUs %v of %q: got %q, want %q", tt.cpus, tt.info, got, tt.want)
		}
	}
}
