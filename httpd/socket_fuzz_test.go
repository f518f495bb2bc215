package httpd

import (
	"errors"
	"strings"
	"testing"

	"sandbox/core/fault"
)

// FuzzControl is a text frame of a WebSocket: it is refused, or asks for what a terminal can do.
func FuzzControl(f *testing.F) {
	f.Add(`{"type":"resize","cols":80,"rows":24}`)
	f.Add(`{"type":"resize","cols":-1,"rows":65536}`)
	f.Add(`{"type":"signal","signal":"INT"}`)
	f.Add(`{"type":"detach","stdout":-1}`)
	f.Add(`{"type":"eof"}{"type":"eof"}`)
	f.Fuzz(func(t *testing.T, frame string) {
		on := actions{
			resize: func(cols, rows int) error {
				if cols < 1 || cols > maxSide || rows < 1 || rows > maxSide {
					t.Errorf("a size of %d and %d", cols, rows)
				}
				return nil
			},
			signal: func(name string) error {
				sig, err := signalOf(name)
				if err == nil && (sig < 1 || sig > 64) {
					t.Errorf("the signal %d", sig)
				}
				return err
			},
			eof: func() error { return nil },
		}
		err := new(socket).control(strings.NewReader(frame), on)
		if err != nil && !errors.Is(err, errDetached) && !fault.Classified(err) {
			t.Errorf("%q: %v", frame, err)
		}
	})
}
