// Package recipe reads recipes: the subset of Dockerfile that docs/build.md
// describes. It runs nothing and reads no file. A [Recipe] holds nothing but
// instructions that a build can carry out; a [Plan] says which stages of it are
// needed, and [Plan.Steps] what each instruction of a stage comes to once the
// image below it is known.
package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"sandbox/core/document"
	"sandbox/core/fault"
)

const (
	// MaxSize is the most bytes that a recipe may have.
	MaxSize = 1 << 20
	// MaxInstructions is how many instructions a recipe may have.
	MaxInstructions = 1000
)

// Recipe is a recipe, all of whose instructions are in the subset.
type Recipe struct {
	stages []stage
	args   []*instructions.ArgCommand // before the first FROM
	escape rune
}

// stage is what one FROM begins.
type stage struct {
	name     string // in lower case; "" for none
	base     string // as it is written
	platform string
	from     instruction
	commands []instruction
}

// instruction is one instruction. command is nil for FROM.
type instruction struct {
	line    int
	text    string
	command instructions.Command
}

// Read reads a recipe, and names all that is not in the subset with its line.
// Errors: InvalidArgument, with fields; TooLarge.
func Read(text []byte) (*Recipe, error) {
	if len(text) > MaxSize {
		return nil, fault.New(fault.TooLarge, "the recipe has %d bytes and may have at most %d", len(text), MaxSize)
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "the recipe can't be read: %s%s", where(err), brief(err))
	}
	if n := len(parsed.AST.Children); n > MaxInstructions {
		return nil, fault.New(fault.InvalidArgument, "the recipe has %d instructions and may have at most %d", n, MaxInstructions)
	}
	r := &Recipe{escape: parsed.EscapeToken}
	p := document.Problems{Prefix: "the recipe can't be built: "}
	for _, node := range parsed.AST.Children {
		r.add(node, &p)
	}
	p.When(len(r.stages) == 0, "the recipe", "from", "has no FROM")
	return r, p.Err(fault.InvalidArgument)
}

// add adds the instruction of a node.
func (r *Recipe) add(node *parser.Node, p *document.Problems) {
	at := instruction{line: node.StartLine, text: oneLine(node.Original)}
	field := lineOf(at.line)
	if why := refusedWord(node); why != "" {
		p.When(true, field, "subset", "has %s, %s", strings.ToUpper(node.Value), why)
		return
	}
	parsed, err := instructions.ParseInstruction(node)
	if err != nil {
		code := "syntax"
		var unknown *instructions.UnknownInstructionError
		if errors.As(err, &unknown) {
			code = "unknown"
		}
		p.When(true, field, code, "can't be read: %s", brief(err))
		return
	}
	switch c := parsed.(type) {
	case *instructions.Stage:
		r.stages = append(r.stages, stage{name: c.Name, base: c.BaseName, platform: c.Platform, from: at})
	case *instructions.ArgCommand:
		if len(r.stages) == 0 {
			r.args = append(r.args, c)
			return
		}
		r.command(at, c, p)
	case instructions.Command:
		r.command(at, c, p)
	}
}

// command adds an instruction to the last stage.
func (r *Recipe) command(at instruction, c instructions.Command, p *document.Problems) {
	field := lineOf(at.line)
	if len(r.stages) == 0 {
		p.When(true, field, "from", "stands before the first FROM, where only ARG may")
		return
	}
	for _, why := range refused(c) {
		p.When(true, field, "subset", "%s", why)
	}
	last := &r.stages[len(r.stages)-1]
	at.command = c
	last.commands = append(last.commands, at)
}

// Lex returns what expands words as the recipe wants them expanded.
func (r *Recipe) lex() *shell.Lex { return shell.NewLex(r.escape) }

// lineOf returns the name that a line has in failures.
func lineOf(line int) string { return fmt.Sprintf("line %d", line) }

// maxText bounds how much of an instruction is shown.
const maxText = 200

// oneLine returns an instruction as it is shown: on one line, and not too long.
func oneLine(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "..."
	}
	return text
}

// brief returns the text of a failure of the parser on one line, and not too long.
func brief(err error) string { return oneLine(err.Error()) }

// where returns the line that a failure of the parser tells of, with a colon.
func where(err error) string {
	var at *parser.LocationError
	if !errors.As(err, &at) || len(at.Locations) == 0 || len(at.Locations[0]) == 0 {
		return ""
	}
	return lineOf(at.Locations[0][0].Start.Line) + ": "
}
