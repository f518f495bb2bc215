package recipe

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/command"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// notKept are the instructions that are known and not in the subset, and why. What an
// image could not keep is refused, since it would be lost without a word.
var notKept = map[string]string{
	command.Maintainer: "which is obsolete: use LABEL",
	command.Onbuild:    "which images here don't keep: write the instruction into the recipes that stand on this image",
	command.Volume:     "which images here don't keep: name volumes when a box is made",
}

// refusedWord returns why an instruction is not in the subset, whatever it says.
func refusedWord(node *parser.Node) string { return notKept[strings.ToLower(node.Value)] }

// refused returns what of an instruction is not in the subset.
func refused(c instructions.Command) []string {
	switch c := c.(type) {
	case *instructions.RunCommand:
		return refusedFlags("RUN", c.FlagsUsed, "network")
	case *instructions.CopyCommand:
		return append(refusedCopy("COPY", c.SourcesAndDest, c.Chmod, c.Link, c.Parents), excludes("COPY", c.ExcludePatterns)...)
	case *instructions.AddCommand:
		return refusedAdd(c)
	}
	return nil
}

// refusedFlags names the flags that are used and not allowed.
func refusedFlags(word string, used []string, allowed string) (why []string) {
	for _, flag := range used {
		if flag != allowed {
			why = append(why, fmt.Sprintf("has %s --%s, which is not in the subset", word, flag))
		}
	}
	return why
}

func refusedAdd(c *instructions.AddCommand) []string {
	why := append(refusedCopy("ADD", c.SourcesAndDest, c.Chmod, c.Link, false), excludes("ADD", c.ExcludePatterns)...)
	if c.Checksum != "" {
		why = append(why, "has ADD --checksum, which is not in the subset")
	}
	if c.Unpack != nil {
		why = append(why, "has ADD --unpack, which is not in the subset")
	}
	for _, source := range c.SourcePaths {
		if remote(source) {
			why = append(why, fmt.Sprintf("has ADD of %.100q: only files of the context can be added; fetch it with RUN", source))
		}
	}
	return why
}

// remote tells whether a source of ADD is at another host.
func remote(source string) bool {
	return strings.Contains(source, "://") || strings.HasPrefix(source, "git@")
}

func excludes(word string, patterns []string) []string {
	if len(patterns) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("has %s --exclude, which is not in the subset: use .dockerignore", word)}
}

// refusedCopy names what COPY and ADD can't have here.
func refusedCopy(word string, files instructions.SourcesAndDest, chmod string, link, parents bool) (why []string) {
	if link {
		why = append(why, fmt.Sprintf("has %s --link, which is not in the subset: leave it out", word))
	}
	if parents {
		why = append(why, fmt.Sprintf("has %s --parents, which is not in the subset", word))
	}
	if len(files.SourceContents) > 0 {
		why = append(why, fmt.Sprintf("has %s with a here-document, which is not in the subset: use RUN, or a file", word))
	}
	if _, err := mode(chmod); err != nil && !strings.Contains(chmod, "$") {
		why = append(why, fmt.Sprintf("has --chmod=%.100s: want an octal mode, as 0644", chmod))
	}
	return why
}

// mode reads the mode of --chmod; nil for "".
func mode(text string) (*int, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err == nil && n > 0o7777 {
		err = strconv.ErrRange
	}
	bits := int(n)
	return &bits, err
}
