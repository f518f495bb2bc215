// Package handover is what a daemon and the child that holds its log engine
// know of each other: arguments, descriptors, and a word.
package handover

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// Descriptors that the child is started with.
const (
	Socket   = 3 // listens for requests
	Tell     = 4 // written to when requests are answered
	Lifeline = 5 // at its end the daemon is gone or wants no more
	Lock     = 6 // the lock of the engine's directory, which ends with the child
)

// Ready is what is written to Tell when requests are answered. What else comes
// there is why they are not.
const Ready = "ready\n"

// Settings is what the daemon decides.
type Settings struct {
	Data    string        // directory of the engine's data
	Library string        // path of libchdb.so
	TTL     time.Duration // how long a row is kept
	Memory  int64         // bytes that all statements together may use
	Caged   bool          // the child has given up what it does not need
}

// Args returns the settings as arguments of the child.
func (s Settings) Args() []string {
	return []string{"-data", s.Data, "-library", s.Library, "-ttl", s.TTL.String(), "-memory", fmt.Sprint(s.Memory), fmt.Sprintf("-caged=%t", s.Caged)}
}

// Parse reads the arguments of the child.
func Parse(args []string) (Settings, error) {
	var s Settings
	f := flag.NewFlagSet("sandbox-logs", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.Data, "data", "", "")
	f.StringVar(&s.Library, "library", "", "")
	f.DurationVar(&s.TTL, "ttl", 0, "")
	f.Int64Var(&s.Memory, "memory", 0, "")
	f.BoolVar(&s.Caged, "caged", false, "")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.Data == "" || s.Library == "" || f.NArg() > 0 {
		return s, errors.New("this program is started by sandbox serve")
	}
	return s, nil
}
