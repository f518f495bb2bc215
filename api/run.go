package api

import "cmp"

// MaxOutput is how much of each stream a [RunResult] holds, in bytes (contract,
// section 6).
const MaxOutput = 10 << 20

// RunResult is what a command gave that was run to its end (contract, section
// 6). ExitCode, Signal and Reason are those of [Exec].
type RunResult struct {
	ExitCode       *int    `json:"exit_code"`
	Signal         *int    `json:"signal"`
	Reason         *Reason `json:"reason"`
	Stdout         string  `json:"stdout"`
	Stderr         string  `json:"stderr"`
	StdoutEncoding string  `json:"stdout_encoding"` // UTF8 or Base64
	StderrEncoding string  `json:"stderr_encoding"`
	Truncated      bool    `json:"truncated"` // there was more output
	DurationMS     int64   `json:"duration_ms"`
}

// Output returns the output as the command wrote it; it fails where a stream is
// not in the encoding that the result names.
func (r RunResult) Output() (stdout, stderr []byte, err error) {
	if stdout, err = Bytes(r.Stdout, r.StdoutEncoding); err == nil {
		stderr, err = Bytes(r.Stderr, r.StderrEncoding)
	}
	return stdout, stderr, err
}

// Capture keeps the first bytes of each stream of a command. The zero value is
// ready. One goroutine uses it.
type Capture struct {
	Most           int // bytes of each stream; 0 for [MaxOutput]
	stdout, stderr beginning
}

// beginning is the first bytes of a stream.
type beginning struct {
	kept []byte
	cut  bool // there was more
}

// Add takes a piece of a stream, which it copies. It never fails: it is a sink
// of output.
func (c *Capture) Add(stderr bool, p []byte) error {
	to := &c.stdout
	if stderr {
		to = &c.stderr
	}
	if room := cmp.Or(c.Most, MaxOutput) - len(to.kept); len(p) > room {
		p, to.cut = p[:room], true
	}
	to.kept = append(to.kept, p...)
	return nil
}

// Result returns the result of a command that ended as s says, with the output
// that was kept. How long it took is the caller's to set.
func (c *Capture) Result(s ExitStatus) RunResult {
	e := Exec{}.Ended(s)
	r := RunResult{ExitCode: e.ExitCode, Signal: e.Signal, Reason: e.Reason, Truncated: c.stdout.cut || c.stderr.cut}
	r.Stdout, r.StdoutEncoding = c.stdout.text()
	r.Stderr, r.StderrEncoding = c.stderr.text()
	return r
}

// text leaves out the beginning of a character at the place of the cut.
func (b beginning) text() (text, encoding string) {
	if b.cut {
		b.kept = b.kept[:len(b.kept)-Partial(b.kept)]
	}
	return Text(b.kept)
}
