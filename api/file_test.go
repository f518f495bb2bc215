package api_test

import (
	"encoding"
	"testing"

	"sandbox/api"
)

var _ encoding.TextAppender = api.FileMode(0)

func TestFileMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[api.FileMode]string{0: "0000", 0o7: "0007", 0o70: "0070", 0o755: "0755", 0o1777: "1777", 0o7777: "7777"} {
		text, err := mode.MarshalText()
		if err != nil || string(text) != want || mode.String() != want {
			t.Errorf("%o: %q, %q, %v, want %s", int(mode), text, mode.String(), err, want)
		}
		var read api.FileMode
		if err := read.UnmarshalText(text); err != nil || read != mode {
			t.Errorf("%s is read as %o, %v", text, int(read), err)
		}
	}
}
