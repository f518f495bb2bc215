package cli

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"sandbox/core"
)

// keptOutput is how much of each stream a result holds.
const keptOutput = 10 << 20

// result is what run and exec print with -o json, once the command has ended.
type result struct {
	ExitCode       int    `json:"exit_code"`
	Signal         *int   `json:"signal"`
	Reason         string `json:"reason"`
	Stdout         string `json:"stdout"`
	Stderr         string `json:"stderr"`
	StdoutEncoding string `json:"stdout_encoding"`
	StderrEncoding string `json:"stderr_encoding"`
	Truncated      bool   `json:"truncated"`
	DurationMS     int64  `json:"duration_ms"`
}

// capture keeps a command's output for its result.
type capture struct {
	stdout, stderr []byte
	truncated      bool
	start          time.Time
}

// take is a sink of [core.Exec.Stream].
func (c *capture) take(stderr bool, p []byte) error {
	stream := &c.stdout
	if stderr {
		stream = &c.stderr
	}
	if room := keptOutput - len(*stream); len(p) > room {
		p, c.truncated = p[:room], true
	}
	*stream = append(*stream, p...)
	return nil
}

func (c *capture) result(status core.ExecStatus) result {
	r := result{ExitCode: status.ExitCode, Reason: status.Reason, Truncated: c.truncated, DurationMS: time.Since(c.start).Milliseconds()}
	r.Stdout, r.StdoutEncoding = text(c.stdout)
	r.Stderr, r.StderrEncoding = text(c.stderr)
	if status.Signal != 0 {
		r.Signal = &status.Signal
	}
	return r
}

// text returns p as JSON can hold it. A character that the limit has cut in two
// is left out; any other byte that is not text makes all of it base64.
func text(p []byte) (s, encoding string) {
	if len(p) == keptOutput {
		p = wholeCharacters(p)
	}
	if utf8.Valid(p) {
		return string(p), "utf-8"
	}
	return base64.StdEncoding.EncodeToString(p), "base64"
}

// wholeCharacters leaves out the beginning of a character at the end of p.
func wholeCharacters(p []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if tail := p[len(p)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return p[:len(p)-back]
			}
			break
		}
	}
	return p
}
