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
