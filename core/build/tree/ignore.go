package tree

import (
	"bytes"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"sandbox/core/fault"
)

// IgnoreFile is the name of the file that says what a tree leaves out.
const IgnoreFile = ".dockerignore"

// Each pattern is tried with each file, so that their number and length are bounded.
const (
	maxIgnore   = 256 << 10 // bytes of the file
	maxPatterns = 1000
	maxPattern  = 1000 // bytes
)

// ignore says what a tree leaves out.
type ignore struct {
	m       *patternmatcher.PatternMatcher
	parents map[string]patternmatcher.MatchInfo // of the directories that were asked about
}

// newIgnore reads the text of a .dockerignore. Errors: InvalidArgument,
// TooLarge.
func newIgnore(text []byte) (*ignore, error) {
	if len(text) > maxIgnore {
		return nil, fault.New(fault.TooLarge, "%s has more than %d bytes", IgnoreFile, maxIgnore)
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, IgnoreFile)
	}
	if len(patterns) > maxPatterns {
		return nil, fault.New(fault.InvalidArgument, "%s has %d patterns and may have at most %d", IgnoreFile, len(patterns), maxPatterns)
	}
	for _, pattern := range patterns {
		if len(pattern) > maxPattern {
			return nil, fault.New(fault.InvalidArgument, "%s has a pattern of %d bytes, and one may have at most %d", IgnoreFile, len(pattern), maxPattern)
		}
	}
	m, err := patternmatcher.New(patterns)
	if err == nil {
		_, _, err = m.MatchesUsingParentResults("file", patternmatcher.MatchInfo{}) // compiles all of them
	}
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, IgnoreFile)
	}
	return &ignore{m, map[string]patternmatcher.MatchInfo{}}, nil
}

// leaves reports whether a file is left out, and whether something below it may be in
// the tree all the same. The directories above it must have been asked about before.
func (i *ignore) leaves(name string, isDir bool) (left, below bool) {
	left, info, err := i.m.MatchesUsingParentResults(name, i.parents[parent(name)])
	if err != nil { // a pattern that can't be compiled was refused
		return true, true
	}
	if isDir {
		i.parents[name] = info
	}
	return left, i.m.Exclusions()
}

// parent returns the directory of a path; "" for the tree itself.
func parent(name string) string {
	at := strings.LastIndexByte(name, '/')
	return name[:max(at, 0)]
}
