package options

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// The limits of a main command. A check that came more often than MinHealthMS would use
// more of the box than the command does that it looks at.
const (
	MaxRestarts = 1000000
	MinHealthMS = 100
	MaxHealthMS = 24 * 60 * 60 * 1000 // a day
	MaxRetries  = 1000
)

// The defaults of a health check are docker's.
const (
	DefaultHealthIntervalMS      = 30000
	DefaultHealthTimeoutMS       = 30000
	DefaultHealthStartIntervalMS = 5000
	DefaultHealthRetries         = 3
)

// imageCommand is the word for the command that an image has of its own.
const imageCommand = "image"

// serviceMembers are the members about the main command of a box.
type serviceMembers struct {
	Command         *mainCommand `json:"command"`
	Restart         *string      `json:"restart"`
	StopWithCommand *bool        `json:"stop_with_command"`
	HealthCheck     *healthCheck `json:"healthcheck"`
}

type healthCheck struct {
	Test            *[]text `json:"test"`
	IntervalMS      *int64  `json:"interval_ms"`
	TimeoutMS       *int64  `json:"timeout_ms"`
	StartPeriodMS   *int64  `json:"start_period_ms"`
	StartIntervalMS *int64  `json:"start_interval_ms"`
	Retries         *int    `json:"retries"`
}

// mainCommand is a list of arguments, or the word image.
type mainCommand struct {
	args  []string
	image bool
}

// UnmarshalJSONFrom implements the interface through which package json reads c.
func (c *mainCommand) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		var word string
		if err := json.UnmarshalDecode(dec, &word); err != nil {
			return err
		}
		if c.image = word == imageCommand; !c.image {
			return errMainCommand
		}
		return nil
	case '[':
		var args []text
		err := json.UnmarshalDecode(dec, &args)
		c.args = plain(args)
		return err
	}
	return errMainCommand
}

const errMainCommand document.Complaint = `must be a list of strings, or "image"`

// fill sets those fields of b that d has a member for.
func (d *serviceMembers) fill(b *Box) {
	if d.Command != nil {
		b.Command, b.ImageCommand = d.Command.args, d.Command.image
	}
	b.Restart, b.StopWithCommand = or(d.Restart, b.Restart), or(d.StopWithCommand, b.StopWithCommand)
	if h := d.HealthCheck; h != nil {
		b.HealthCheck = &api.HealthCheck{
			Test: plain(or(h.Test, nil)), IntervalMS: or(h.IntervalMS, 0), TimeoutMS: or(h.TimeoutMS, 0),
			StartPeriodMS: or(h.StartPeriodMS, 0), StartIntervalMS: or(h.StartIntervalMS, 0), Retries: or(h.Retries, 0),
		}
	}
}

// check notes values that stand in the document and that a Box can't tell from absent
// ones.
func (d *serviceMembers) check(p *problems) {
	none := d.Command != nil && !d.Command.image && len(d.Command.args) == 0
	p.When(none, "command", "empty", "must name a command")
	p.When(d.Restart != nil && *d.Restart == "", "restart", "value", restartWords)
	h := d.HealthCheck
	if h == nil {
		return
	}
	p.When(h.Test != nil && len(*h.Test) == 0, "healthcheck.test", "empty", testWords)
	for name, ms := range map[string]*int64{"interval_ms": h.IntervalMS, "timeout_ms": h.TimeoutMS, "start_interval_ms": h.StartIntervalMS} {
		p.When(ms != nil && *ms == 0, "healthcheck."+name, "range", "is 0 and must be at least %d", MinHealthMS)
	}
	p.When(h.Retries != nil && *h.Retries == 0, "healthcheck.retries", "range", "is 0 and must be at least 1")
}

const (
	restartWords = "must be no, always, on-failure or on-failure:N"
	testWords    = "must begin with CMD or CMD-SHELL and what follows it, or be NONE alone"
)

// checkService checks the main command and what belongs to it.
func (b Box) checkService(p *problems) {
	has := len(b.Command) > 0 || b.ImageCommand
	if len(b.Command) > 0 {
		p.arguments("command", b.Command)
	}
	p.When(b.ImageCommand && len(b.Command) > 0, "command", "one_of", "must be the image's or another one, not both")
	p.When(b.ImageCommand && b.Image == "" && b.RootfsPath != "", "command", "value", "must be a list of strings: the box has no image")
	_, _, err := ParseRestart(b.Restart)
	p.When(err != nil, "restart", "value", restartWords)
	needs := "needs a command, and the box has none"
	p.When(!has && b.Restart != "" && b.Restart != string(api.RestartNo), "restart", "no_command", "%s", needs)
	p.When(!has && b.StopWithCommand, "stop_with_command", "no_command", "%s", needs)
	if b.HealthCheck == nil {
		return
	}
	p.When(!has, "healthcheck", "no_command", "%s", needs)
	checkHealth(*b.HealthCheck, p)
}

func checkHealth(h api.HealthCheck, p *problems) {
	at := "healthcheck."
	for i, arg := range h.Test {
		p.text(fmt.Sprintf("%stest[%d]", at, i), arg)
	}
	p.When(len(h.Test) > 0 && !validTest(h.Test), at+"test", "value", testWords)
	size := 0
	for _, arg := range h.Test {
		size += len(arg) + 1
	}
	p.When(size > MaxCmdBytes, at+"test", "size", "has %d bytes and may have at most %d", size, MaxCmdBytes)
	for name, ms := range map[string]int64{"interval_ms": h.IntervalMS, "timeout_ms": h.TimeoutMS, "start_interval_ms": h.StartIntervalMS} {
		p.When(ms != 0 && ms < MinHealthMS, at+name, "range", "is %d and must be at least %d", ms, MinHealthMS)
		p.When(ms > MaxHealthMS, at+name, "range", "is %d and must be at most %d", ms, MaxHealthMS)
	}
	p.When(h.StartPeriodMS < 0, at+"start_period_ms", "range", "is %d and must be at least 0", h.StartPeriodMS)
	p.When(h.StartPeriodMS > MaxHealthMS, at+"start_period_ms", "range", "is %d and must be at most %d", h.StartPeriodMS, MaxHealthMS)
	p.Within(at+"retries", h.Retries, 0, MaxRetries)
}

// validTest tells whether a test is one that can be run, or none.
func validTest(test []string) bool {
	switch {
	case len(test) == 0:
		return false
	case test[0] == api.HealthNone:
		return len(test) == 1
	case test[0] == api.HealthShell:
		return len(test) == 2
	}
	return test[0] == api.HealthCommand && len(test) > 1 && test[1] != ""
}

// ParseRestart reads a restart of a box: its word, and how often at most a command is
// started again that has failed, 0 for any number. Errors: InvalidArgument.
func ParseRestart(s string) (word api.Restart, most int, err error) {
	word, number, bounded := cut(s)
	switch word {
	case api.RestartNo, api.RestartAlways, api.RestartOnFailure:
	default:
		return "", 0, fault.New(fault.InvalidArgument, "restart %.100q: %s", s, restartWords)
	}
	if !bounded {
		return word, 0, nil
	}
	most, err = strconv.Atoi(number)
	if err != nil || word != api.RestartOnFailure || most < 1 || most > MaxRestarts || strconv.Itoa(most) != number {
		return "", 0, fault.New(fault.InvalidArgument, "restart %.100q: %s, with N from 1 to %d", s, restartWords, MaxRestarts)
	}
	return word, most, nil
}

func cut(s string) (word api.Restart, number string, bounded bool) {
	before, number, bounded := strings.Cut(s, ":")
	return cmp.Or(api.Restart(before), api.RestartNo), number, bounded
}

// Serve returns the options with what the image of the box says about its main command:
// its command, if that is asked for, and those members of a health check that the options
// leave open. Errors: InvalidArgument, with fields: the image has no command, or no health
// check to complete.
func (b Box) Serve(command []string, health *api.HealthCheck) (Box, error) {
	var p problems
	if b.ImageCommand {
		none := len(command) == 0 || command[0] == ""
		p.When(none, "command", "required", "must be a list of strings: image %.200q has no Entrypoint and no Cmd", b.Image)
		if !none {
			p.arguments("command", command)
		}
		b.Command, b.ImageCommand = command, false
	}
	if len(b.Command) == 0 {
		return b, p.Err(fault.InvalidArgument)
	}
	asked := b.HealthCheck
	b.HealthCheck = complete(asked, health)
	none := asked != nil && len(asked.Test) == 0 && b.HealthCheck == nil
	p.When(none, "healthcheck.test", "required", "must be given: image %.200q has no health check", b.Image)
	return b, p.Err(fault.InvalidArgument)
}

// complete returns a health check with all members set: as asked for, else as the image
// says, within the limits, else the default. It returns nil if nobody names a check.
func complete(asked, image *api.HealthCheck) *api.HealthCheck {
	var a, i api.HealthCheck
	if asked != nil {
		a = *asked
	}
	if image != nil && validTest(image.Test) {
		i = *image
	}
	test := a.Test
	if len(test) == 0 {
		test = i.Test
	}
	switch {
	case len(test) == 0:
		return nil
	case test[0] == api.HealthNone:
		return &api.HealthCheck{Test: test} // so that a clone does not take the image's
	}
	bounded := func(ms int64) int64 {
		if ms == 0 {
			return 0
		}
		return min(max(ms, MinHealthMS), MaxHealthMS)
	}
	return &api.HealthCheck{
		Test:            test,
		IntervalMS:      cmp.Or(a.IntervalMS, bounded(i.IntervalMS), DefaultHealthIntervalMS),
		TimeoutMS:       cmp.Or(a.TimeoutMS, bounded(i.TimeoutMS), DefaultHealthTimeoutMS),
		StartPeriodMS:   cmp.Or(a.StartPeriodMS, min(max(i.StartPeriodMS, 0), MaxHealthMS)),
		StartIntervalMS: cmp.Or(a.StartIntervalMS, bounded(i.StartIntervalMS), DefaultHealthStartIntervalMS),
		Retries:         cmp.Or(a.Retries, min(max(i.Retries, 0), MaxRetries), DefaultHealthRetries),
	}
}
