package test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const contract = "docs/CONTRACT.md"

// TestCitations wants every section of the contract that a file cites, in a
// comment or in prose, to be a heading of docs/CONTRACT.md.
func TestCitations(t *testing.T) {
	t.Parallel()
	text := read(t, contract)
	sections := headings(text)
	cited := 0
	for _, path := range sources(t) {
		for _, section := range citations(read(t, path)) {
			cited++
			if !slices.Contains(sections, section) {
				t.Errorf("%s cites section %s of the contract, which %s does not have", path, section, contract)
			}
		}
	}
	if cited < 30 {
		t.Errorf("found %d citations: the pattern no longer fits how they are written", cited)
	}
	for _, section := range references(text) {
		if !slices.Contains(sections, section) {
			t.Errorf("%s refers to its section %s, which it does not have", contract, section)
		}
	}
}

// TestCitationForms shows the forms that are understood.
func TestCitationForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"kept (contract, section 3).":                      {"3"},
		"what is asked for (contract,\n\t// section 12)":   {"12"},
		"// as JSON shows it (contract, section\n// 3)":    {"3"},
		"# docs/CONTRACT.md, sections 6 and 8.":            {"6", "8"},
		"in the order of the contract's table (section 8)": {"8"},
		"the 15 s of the contract (sections 3 and 5)":      {"3", "5"},
		"goes by section 3 of the contract: what":          {"3"},
		"// Section 9 of\n// the contract":                 {"9"},
		"as the contract says":                             nil,
		"RFC 9110, section 10":                             nil,
	} {
		if got := citations(text); !slices.Equal(got, want) {
			t.Errorf("%q cites %v, want %v", text, got, want)
		}
	}
	if got := headings("# 1. No\n## 2. Yes\n### 3. No\n"); !slices.Equal(got, []string{"2"}) {
		t.Errorf("the headings are %v", got)
	}
}

// headings returns the numbers of a document's sections.
func headings(text string) (numbers []string) {
	for _, m := range regexp.MustCompile(`(?m)^## (\d+)\. `).FindAllStringSubmatch(text, -1) {
		numbers = append(numbers, m[1])
	}
	return numbers
}

// citations returns the numbers of the sections of the contract that a text
// cites, also over the end of a comment's line.
func citations(text string) (numbers []string) {
	joined := regexp.MustCompile(`\s*\n[\t ]*(?://|#|\*)?[\t ]*`).ReplaceAllString(text, " ")
	behind := regexp.MustCompile(`(?i)\bcontract\b(?:\.md)?[^.;"]{0,60}?\b(sections? \d+(?: and \d+)?)`)
	before := regexp.MustCompile(`(?i)\b(sections? \d+(?: and \d+)?) of the contract\b`)
	for _, form := range []*regexp.Regexp{behind, before} {
		for _, m := range form.FindAllStringSubmatch(joined, -1) {
			numbers = append(numbers, references(m[1])...)
		}
	}
	return numbers
}

// references returns the numbers of the sections that a text refers to,
// whichever document they are of.
func references(text string) (numbers []string) {
	for _, m := range regexp.MustCompile(`(?i)\bsections? (\d+)(?: and (\d+))?`).FindAllStringSubmatch(text, -1) {
		if numbers = append(numbers, m[1]); m[2] != "" {
			numbers = append(numbers, m[2])
		}
	}
	return numbers
}

// sources returns all files of the project that are text, but for the contract
// and this test.
func sources(t *testing.T) (paths []string) {
	t.Helper()
	skipped := []string{"build", "dist", "node_modules", "out", "testdata"} // some come and go meanwhile
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, top)
		if d.IsDir() {
			if name != "" && (strings.HasPrefix(d.Name(), ".") || slices.Contains(skipped, d.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || name == contract || name == "test/contract_test.go" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil && !bytes.Contains(content, []byte{0}) {
			paths = append(paths, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
