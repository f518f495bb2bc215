package ids_test

import (
	"strings"
	"testing"

	"sandbox/core/ids"
)

func TestNew(t *testing.T) {
	t.Parallel()
	seen, letters := map[string]bool{}, map[rune]bool{}
	for range 1000 {
		for _, k := range []ids.Kind{ids.Box, ids.Exec, ids.Key, ids.Context} {
			id := k.New()
			if seen[id] || !k.Valid(id) {
				t.Fatalf("%q came twice (%v) or is not valid", id, seen[id])
			}
			seen[id] = true
			for _, letter := range strings.TrimPrefix(id, string(k)) {
				letters[letter] = true
			}
		}
	}
	if len(letters) != 32 {
		t.Errorf("ids have %d different characters, want 32", len(letters))
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	const rest = "abcdefghijklmnopq267"
	for id, want := range map[string]bool{
		"box_" + rest:              true,
		"":                         false,
		"box_":                     false,
		rest:                       false,
		"exec_" + rest:             false, // of another kind
		"box_" + rest[1:]:          false,
		"box_" + rest + "a":        false,
		"box_0" + rest[1:]:         false, // 0, 1, 8 and 9 are not in the alphabet
		"box_8" + rest[1:]:         false,
		"box_A" + rest[1:]:         false,
		"BOX_" + rest:              false,
		"box_" + rest[1:] + "\x00": false,
		"box_" + rest[1:] + "/":    false,
		"box_a/../" + rest[:16]:    false,
		"box_é" + rest[2:]:         false,
		"box_abcdefgh0jklmnopq267": false, // in the middle
	} {
		if got := ids.Box.Valid(id); got != want {
			t.Errorf("Valid(%q) is %v", id, got)
		}
	}
}
