package test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what documents quote anew")

const top = "../"

// quoted is a block of a document that is a file, which the line before names, or
// with #readme the part of a file between lines that say "README begins" and
// "README ends".
var quoted = regexp.MustCompile("(?m)^<!-- quoted: (\\S+) -->\n```([a-z+]*)\n((?s:.*?))^```\n")

// TestQuoted wants what documents quote to be the file's text, verbatim.
func TestQuoted(t *testing.T) {
	t.Parallel()
	for _, doc := range documents(t) {
		text := read(t, doc)
		if strings.Count(text, "<!-- quoted: ") != len(quoted.FindAllString(text, -1)) {
			t.Errorf("%s: a line that says what is quoted has no block behind it", doc)
		}
		now := quoted.ReplaceAllStringFunc(text, func(block string) string {
			m := quoted.FindStringSubmatch(block)
			return fmt.Sprintf("<!-- quoted: %s -->\n```%s\n%s```\n", m[1], m[2], source(t, m[1]))
		})
		if now != text && *update {
			if err := os.WriteFile(top+doc, []byte(now), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if now != text {
			t.Errorf("%s quotes what is no more so: run make docs", doc)
		}
	}
}

// source returns what a document quotes.
func source(t *testing.T, name string) string {
	t.Helper()
	file, part := strings.CutSuffix(name, "#readme")
	text := read(t, file)
	if !part {
		return text
	}
	_, text, begins := strings.Cut(text, "README begins")
	_, text, _ = strings.Cut(text, "\n") // the rest of that line
	text, _, ends := strings.Cut(text, "README ends")
	if !begins || !ends {
		t.Fatalf("%s has no lines that say where its part for the README begins and ends", file)
	}
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1] // the beginning of the last line
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, indent)
	}
	return strings.Join(lines, "")
}

// TestHello wants the README's program to be short.
func TestHello(t *testing.T) {
	t.Parallel()
	const hello = "examples_c/hello.c"
	if lines := strings.Count(read(t, hello), "\n"); lines > 25 || !strings.Contains(read(t, "README.md"), "<!-- quoted: "+hello+" -->") {
		t.Errorf("%s has %d lines, too many for a README, or is not quoted there", hello, lines)
	}
}

// TestTargets wants every make command of a document to name a target.
func TestTargets(t *testing.T) {
	t.Parallel()
	makefiles := read(t, "Makefile")
	parts, _ := filepath.Glob(top + "mk/*.mk")
	for _, part := range parts {
		makefiles += read(t, strings.TrimPrefix(part, top))
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9 -]*):(?:[^=]|$)`).FindAllStringSubmatch(makefiles, -1) {
		targets = append(targets, strings.Fields(m[1])...)
	}
	command := regexp.MustCompile("(?m)(?:`|^(?:sudo )?)(?:sudo )?make((?: [a-z][a-z0-9-]*)+)")
	for _, doc := range documents(t) {
		for _, m := range command.FindAllStringSubmatch(read(t, doc), -1) {
			for _, target := range strings.Fields(m[1]) {
				if !slices.Contains(targets, target) {
					t.Errorf("%s: there is no make %s", doc, target)
				}
			}
		}
	}
}

// TestLinks wants every relative link to lead to a file. Code is no link.
func TestLinks(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?ms)^```.*?^```")
	link := regexp.MustCompile(`\]\(([^)#]+)`)
	for _, doc := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, doc), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(top, filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}

// TestFigures wants every measured figure in a document to stand in the
// recorded output of make bench.
func TestFigures(t *testing.T) {
	t.Parallel()
	const record = "docs/BENCHMARKS.md"
	recorded := ""
	if _, err := os.Stat(top + record); err == nil {
		recorded = read(t, record)
	}
	figure := regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:µs|us|ms|[MG]B/s|[MG]iB/s)\b`)
	for _, doc := range []string{"README.md"} {
		for _, f := range figure.FindAllString(read(t, doc), -1) {
			if !strings.Contains(recorded, f) {
				t.Errorf("%s: %s does not stand in %s", doc, f, record)
			}
		}
	}
}

// TestScreens keeps the map of the project short: two screens and a glossary.
func TestScreens(t *testing.T) {
	t.Parallel()
	if lines := strings.Count(read(t, "docs/ARCHITECTURE.md"), "\n"); lines > 108 {
		t.Errorf("docs/ARCHITECTURE.md has %d lines, more than two screens and a glossary", lines)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(top + "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	for _, path := range paths {
		docs = append(docs, strings.TrimPrefix(path, top))
	}
	return docs
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(top + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestContents wants the table of contents of docs/RATIONALE.md to have all its
// headings, in their order, and each question to stand once.
func TestContents(t *testing.T) {
	t.Parallel()
	const doc, begin, end = "docs/RATIONALE.md", "<!-- contents -->\n", "<!-- end of contents -->\n"
	text := read(t, doc)
	head, rest, found := strings.Cut(text, begin)
	listed, body, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for its contents", doc)
	}
	var contents strings.Builder
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##(#?) (.*)$`).FindAllStringSubmatch(body, -1) {
		if seen[m[2]] {
			t.Errorf("%s asks twice: %s", doc, m[2])
		}
		seen[m[2]] = true
		fmt.Fprintf(&contents, "%s- [%s](#%s)\n", strings.Repeat("  ", len(m[1])), m[2], anchor(m[2]))
	}
	if *update {
		listed = contents.String()
		if err := os.WriteFile(top+doc, []byte(head+begin+listed+end+body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if listed != contents.String() {
		t.Errorf("the contents of %s are not its headings: run make docs", doc)
	}
}

// anchor is what a heading is linked by.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}
