package logs

import (
	"regexp"
	"slices"
	"unicode"
)

// maxSpellings bounds how many different spellings of one text are searched
// for.
const maxSpellings = 8

// A letter holds the spellings that one character of a text may have in
// lower(Body). The engine's lower changes only ASCII, so most characters have
// one spelling, but k, s and letters beyond ASCII have several.
type letter []string

// letterOf returns the spellings of a character.
func letterOf(r rune) letter {
	l := letter{lowerASCII(r)}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if s := lowerASCII(other); !slices.Contains(l, s) {
			l = append(l, s)
		}
	}
	return l
}

func lowerASCII(r rune) string {
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return string(r)
}

// spellings returns texts of which lower(Body) contains at least one whenever
// Body contains text in any case. If the text has too many spellings, they are
// those of its longest part that has few, and whole is false: then Body may
// contain one of them without containing text.
func spellings(text string) (all []string, whole bool) {
	var letters []letter
	for _, r := range text {
		letters = append(letters, letterOf(r))
	}
	from, to := longest(letters)
	all = []string{""}
	for _, l := range letters[from:to] {
		var longer []string
		for _, start := range all {
			for _, s := range l {
				longer = append(longer, start+s)
			}
		}
		all = longer
	}
	return all, to-from == len(letters)
}

// longest returns the bounds of the longest part of letters that has few
// spellings.
func longest(letters []letter) (from, to int) {
	start, product := 0, 1
	for end, l := range letters {
		product *= len(l)
		for product > maxSpellings {
			product /= len(letters[start])
			start++
		}
		if end+1-start > to-from {
			from, to = start, end+1
		}
	}
	return from, to
}

// anyCase returns the regular expression of RE2 that matches text in any case,
// for all of Unicode.
func anyCase(text string) string { return "(?i)" + regexp.QuoteMeta(text) }
