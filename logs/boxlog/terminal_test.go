package boxlog

import "testing"

func TestShown(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"plain text, grüße\t1":                         "plain text, grüße\t1",
		"\x1b[1;31merror\x1b[0m: no \x1b[4mfile\x1b[m": "error: no file",
		"\x1b]0;user@host: /\x07/ # ls":                "/ # ls",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\":     "link",
		"\x1b[?2004h$ \x1b[K\x1b[6n":                   "$ ",
		"\x1b(B\x1b7a\x1b8\x1b=b\x1bM":                 "ab",
		"\x1bPq#0;2;0\x1b\\after":                      "after",
		"be\x07ll a\x08b \x00\x7f":                     "bell ab ",
		"10%\r20%":                                     "10%\r20%",
		"cut \x1b[38;5":                                "cut ",
		"cut \x1b]0;tit":                               "cut ",
		"cut \x1b":                                     "cut ",
		"[31m is no code":                              "[31m is no code",
		"\x1b[31ж":                                     "31ж",
	} {
		if got := string(shown([]byte(line))); got != want {
			t.Errorf("%q shows %q, want %q", line, got, want)
		}
	}
}
