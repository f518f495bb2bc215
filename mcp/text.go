package mcp

import (
	"fmt"
	"strings"

	"sandbox/api"
)

// textOf returns a result as models read it best. ok is false for one that is best as
// it is, in JSON.
func textOf(result any) (text string, ok bool) {
	switch r := result.(type) {
	case api.RunResult:
		return ofCommand(r), true
	case file:
		return r.text(), true
	}
	return "", false
}

// ofCommand tells how a command ended, and what it printed.
func ofCommand(r api.RunResult) string {
	var b strings.Builder
	if r.ExitCode != nil {
		fmt.Fprintf(&b, "exit code %d", *r.ExitCode)
	}
	if r.Reason != nil && *r.Reason != api.ReasonExited {
		fmt.Fprintf(&b, " (%s)", *r.Reason)
	}
	if r.Truncated {
		b.WriteString("\nThere was more output than is shown here.")
	}
	stream(&b, api.Stdout, r.Stdout, r.StdoutEncoding)
	stream(&b, api.Stderr, r.Stderr, r.StderrEncoding)
	return b.String()
}

// stream adds what a stream has under its name.
func stream(b *strings.Builder, name, text, encoding string) {
	if text == "" {
		return
	}
	if encoding != api.UTF8 {
		name += " in " + encoding
	}
	fmt.Fprintf(b, "\n%s:\n%s", name, text)
}

// text is the content alone, unless there is more to say.
func (f file) text() string {
	var notes string
	if f.Encoding != api.UTF8 {
		notes = "in " + f.Encoding + "\n"
	}
	if f.Truncated {
		notes += fmt.Sprintf("up to byte %d of %d; offset %d reads on\n", f.Next, f.Size, f.Next)
	}
	return notes + f.Content
}
