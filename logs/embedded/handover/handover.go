// Package handover is the interface between a daemon and the child process that
// runs its log engine: the child's arguments, its descriptors, and the word
// with which it says that it is ready.
package handover

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// Descriptors that the child inherits.
const (
	Socket   = 3 // the listening socket for requests
	Tell     = 4 // a pipe: the child writes Ready to it, or why it failed
	Lifeline = 5 // a pipe: its end means that the daemon is gone or stops the child
	Lock     = 6 // the lock of the engine's directory, released when the child ends
)

// Ready is what the child writes to Tell once it answers requests. Anything else
// that it writes there is the reason why it does not.
const Ready = "ready\n"

// Settings are what the daemon decides for the child.
type Settings struct {
	Data    string        // directory of the engine's data
	Library string        // path of libchdb.so
	TTL     time.Duration // how long a row is kept
	Memory  int64         // bytes that all statements together may use
	Caged   bool          // the child has already given up the rights that it does not need
}

// Args returns the settings as the child's arguments.
func (s Settings) Args() []string {
	return []string{"-data", s.Data, "-library", s.Library, "-ttl", s.TTL.String(), "-memory", fmt.Sprint(s.Memory), fmt.Sprintf("-caged=%t", s.Caged)}
}

// Parse reads the child's arguments.
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
