package ast_test

import (
	"testing"

	"sandbox/logs/sql/ast"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct{ text, name string }{
		"":            {`''`, "``"},
		"it's":        {`'it\'s'`, "`it's`"},
		"a`b":         {"'a`b'", "`a\\`b`"},
		`\`:           {`'\\'`, "`\\\\`"},
		"a\n\x00\x7f": {`'a\x0A\x00\x7F'`, "`a\\x0A\\x00\\x7F`"},
		"ж\xff":       {`'ж\xFF'`, "`ж\\xFF`"},
	} {
		if got := ast.QuoteText(s); got != want.text {
			t.Errorf("%q as text: %s, want %s", s, got, want.text)
		}
		if got := ast.QuoteName(s); got != want.name {
			t.Errorf("%q as name: %s, want %s", s, got, want.name)
		}
	}
}

func TestIsPlain(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "_": true, "Az09_": true,
		"": false, "0a": false, "a-b": false, "a b": false, "ж": false, "a`": false,
	} {
		if ast.IsPlain(name) != want {
			t.Errorf("%q: want %t", name, want)
		}
	}
}
