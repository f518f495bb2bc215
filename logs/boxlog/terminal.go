package boxlog

import (
	"regexp"
	"sync"
)

// escapes matches what a terminal obeys and does not show: sequences that set
// colours, move the cursor or name the window, and all single control
// characters except tab and carriage return. A sequence that is cut off by the
// end of the line is matched up to that end.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	const (
		control = `\x1b\[[0-?]*[ -/]*(?:[@-~]|$)`
		text    = `\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)`
		other   = `\x1b[ -/]*(?:[0-~]|$)`
		single  = `[\x00-\x08\x0b\x0c\x0e-\x1b\x7f]`
	)
	return regexp.MustCompile(control + "|" + text + "|" + other + "|" + single) //nolint:forbidigo // on first use
})

// shown returns a line of a terminal without the characters that the terminal
// does not show.
func shown(line []byte) []byte { return escapes().ReplaceAll(line, nil) }
