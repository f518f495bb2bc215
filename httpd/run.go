package httpd

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"
	"unicode/utf8"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// maxOutput is how much of each stream a run keeps (contract, section 6).
const maxOutput = 10 << 20

// outcome is the reply of a run.
type outcome struct {
	ExitCode       *int    `json:"exit_code"`
	Signal         *int    `json:"signal"`
	Reason         *string `json:"reason"`
	Stdout         string  `json:"stdout"`
	Stderr         string  `json:"stderr"`
	StdoutEncoding string  `json:"stdout_encoding"`
	StderrEncoding string  `json:"stderr_encoding"`
	Truncated      bool    `json:"truncated"`
	DurationMS     int64   `json:"duration_ms"`
}

// run makes a box, runs a command in it and takes it away again, also when the
// client hangs up or this process ends meanwhile.
func (s *Server) run(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, options.MaxCommand)
	if err != nil {
		return err
	}
	if doc == nil {
		doc = []byte("{}") // which names what is missing
	}
	o, asked, err := options.DecodeRun(doc)
	if err != nil {
		return err
	}
	if err := s.complete(r, &o); err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	start := time.Now()
	result, err := s.runIn(ctx, o, asked)
	if err != nil {
		return err
	}
	result.DurationMS = time.Since(start).Milliseconds()
	return writeJSON(w, http.StatusOK, result)
}

// runIn returns the outcome once the box has gone.
func (s *Server) runIn(ctx context.Context, o options.Box, asked options.ExecRequest) (outcome, error) {
	box, err := s.Runtime.CreateOwned(ctx, o)
	if err != nil {
		return outcome{}, err
	}
	result, err := runOnce(ctx, box, asked)
	removing := s.Runtime.Remove(context.WithoutCancel(ctx), box.ID(), true)
	if err == nil && !fault.Is(removing, fault.BoxNotFound) { // its init may have ended, and it by that
		err = removing
	}
	return result, err
}

func runOnce(ctx context.Context, box *core.Box, asked options.ExecRequest) (outcome, error) {
	command, err := box.Exec(ctx, asked.Exec)
	if err != nil {
		return outcome{}, err
	}
	defer command.Close()
	if asked.Exec.Stdin {
		go feed(command, asked.Input)
	}
	var out, errs capture
	end, err := command.Stream(ctx, make([]byte, core.OutputBuffer), func(stderr bool, p []byte) error {
		if stderr {
			errs.add(p)
		} else {
			out.add(p)
		}
		return nil
	})
	if err != nil {
		return outcome{}, err
	}
	rec := command.Record().Ended(end)
	result := outcome{ExitCode: rec.ExitCode, Signal: rec.Signal, Reason: rec.Reason, Truncated: out.truncated || errs.truncated}
	result.Stdout, result.StdoutEncoding = out.text()
	result.Stderr, result.StderrEncoding = errs.text()
	return result, nil
}

// capture keeps the beginning of a stream.
type capture struct {
	kept      []byte
	truncated bool
}

func (c *capture) add(p []byte) {
	if room := maxOutput - len(c.kept); len(p) > room {
		p, c.truncated = p[:room], true
	}
	c.kept = append(c.kept, p...)
}

// text returns what was kept, and how it is written.
func (c *capture) text() (text, encoding string) {
	kept := c.kept
	if c.truncated { // perhaps within a character
		for n := 1; n < utf8.UTFMax && n <= len(kept); n++ {
			if tail := kept[len(kept)-n:]; utf8.RuneStart(tail[0]) && !utf8.FullRune(tail) {
				kept = kept[:len(kept)-n]
				break
			}
		}
	}
	if utf8.Valid(kept) {
		return string(kept), "utf-8"
	}
	return base64.StdEncoding.EncodeToString(kept), "base64"
}
