package shim

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A list that is not set yet is read again, one that is set is not, and one whose
// group was removed counts no more.
func TestCPUUse(t *testing.T) {
	t.Parallel()
	var use cpuUse
	parent := t.TempDir()
	set := func(slot, list string) {
		if err := os.MkdirAll(filepath.Join(parent, slot), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(parent, slot, "cpuset.cpus"), []byte(list+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	counts := func(when string, want map[int]int) {
		if got := use.count(parent); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	counts("no boxes", map[int]int{})
	set("box_a", "0-1")
	set("box_b", "")
	set("other", "5")
	counts("one list is set", map[int]int{0: 1, 1: 1})
	set("box_a", "3") // as no kernel does
	set("box_b", "1")
	counts("both are set", map[int]int{0: 1, 1: 2})
	use.forget("box_a")
	counts("forgotten", map[int]int{1: 1, 3: 1})
	if err := os.RemoveAll(filepath.Join(parent, "box_b")); err != nil {
		t.Fatal(err)
	}
	counts("one has gone", map[int]int{3: 1})
}

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
