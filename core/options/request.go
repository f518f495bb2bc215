package options

import (
	"cmp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// createDocument is the REST body that creates a box (contract, section 2).
type createDocument struct {
	boxMembers
	Name       *string `json:"name"`
	Image      *string `json:"image"`
	RootfsPath *string `json:"rootfs_path"`
	User       *string `json:"user"`
	Hostname   *string `json:"hostname"`
	Labels     *object `json:"labels"`
}

// execMembers are the members of an exec whose names no member of a box has.
type execMembers struct {
	Cmd       *command `json:"cmd"`
	TTY       *bool    `json:"tty"`
	Cols      *int     `json:"cols"`
	Rows      *int     `json:"rows"`
	Stdin     *string  `json:"stdin"`
	StdinOpen *bool    `json:"stdin_open"`
	TimeoutMS *int     `json:"timeout_ms"`
}

// execDocument is the REST body that starts a command (contract, section 3).
type execDocument struct {
	execMembers
	Env        *env    `json:"env"`
	WorkingDir *string `json:"working_dir"`
	User       *string `json:"user"`
}

// runDocument is the REST body that creates a box and runs a command in it
// (contract, section 6).
type runDocument struct {
	createDocument
	execMembers
}

// ExecRequest is a command and the input for it.
type ExecRequest struct {
	Exec  Exec
	Input string // all of stdin, which is closed behind it; counts with Exec.Stdin and without Open
	Open  bool   // stdin stays open for a client that attaches
}

// DecodeCreate reads a REST body that creates a box, as strictly as [Decode].
// Without image and rootfs_path the image is [DefaultImage]; without
// auto_remove it is false. The checks of the host run together with all others,
// so that everything that is wrong is reported at once. Errors: Malformed and
// InvalidArgument, with fields, and those of the host's checks.
func DecodeCreate(doc []byte, host ...HostCheck) (Box, error) {
	var d createDocument
	var p problems
	if err := p.Read(doc, &d, MaxDocument); err != nil {
		return Box{}, err
	}
	d.missing(&p)
	b := d.box()
	d.check(b, &p)
	err := p.host(&b, host)
	return b, cmp.Or(p.Err(fault.InvalidArgument), err)
}

// HostCheck adds to the problems what the host does not let a box have, and may
// set further fields of the box. The error that it returns counts only when
// nothing is wrong with the document.
type HostCheck func(*Box, *document.Problems) error

// host runs the checks of the host and returns their first error.
func (p *problems) host(b *Box, checks []HostCheck) (first error) {
	for _, check := range checks {
		first = cmp.Or(first, check(b, &p.Problems))
	}
	return first
}

// DecodeExec reads a REST body that starts a command, as strictly as [Decode].
// Errors: Malformed and InvalidArgument, with fields.
func DecodeExec(doc []byte) (ExecRequest, error) {
	var d execDocument
	var p problems
	if err := p.Read(doc, &d, MaxCommand); err != nil {
		return ExecRequest{}, err
	}
	p.Required("cmd", d.Cmd != nil)
	r := d.request()
	r.Exec.Env, r.Exec.WorkingDir, r.Exec.User = or(d.Env, nil), or(d.WorkingDir, ""), or(d.User, "")
	d.check(r, &p)
	return r, p.Err(fault.InvalidArgument)
}

// DecodeRun reads a REST body that creates a box, runs a command in it and
// removes the box. The body has the members of both a box and an exec; env,
// working_dir and user are those of the box. The box is always made from an
// image and has auto_remove, whatever the body says. A body without cmd returns an
// exec without a command: the image's own is to be run. Errors: Malformed and
// InvalidArgument, with fields, and those of the host's checks.
func DecodeRun(doc []byte, host ...HostCheck) (Box, ExecRequest, error) {
	var d runDocument
	var p problems
	if err := p.Read(doc, &d, MaxCommand); err != nil {
		return Box{}, ExecRequest{}, err
	}
	p.Required("image", d.Image != nil)
	p.Unread(d.RootfsPath != nil, "rootfs_path", "unknown", "is not allowed in a run: create a box with it, and start an exec in it")
	d.RootfsPath = nil
	d.missing(&p)
	b, r := d.box(), d.request()
	b.AutoRemove = true
	d.createDocument.check(b, &p)
	d.execMembers.check(r, &p)
	p.When(r.Open, "stdin_open", "value", "must not be true: a run's input can't be written to later; use stdin")
	err := p.host(&b, host)
	return b, r, cmp.Or(p.Err(fault.InvalidArgument), err)
}

func (d *createDocument) box() Box {
	b := Defaults()
	b.AutoRemove = false
	d.fill(&b)
	b.Name, b.User, b.Labels = or(d.Name, ""), or(d.User, ""), or(d.Labels, nil)
	b.RootfsPath, b.Hostname = or(d.RootfsPath, ""), or(d.Hostname, "")
	if b.Image = or(d.Image, ""); d.Image == nil && d.RootfsPath == nil {
		b.Image = DefaultImage
	}
	return b
}

func (d *createDocument) check(b Box, p *problems) {
	p.When(d.Name != nil && *d.Name == "", "name", "empty", "must not be empty")
	p.When(d.Image != nil && d.RootfsPath != nil, "image", "one_of", "must not be given with rootfs_path")
	p.When(d.Image != nil && *d.Image == "", "image", "empty", "must not be empty")
	p.When(d.RootfsPath != nil && *d.RootfsPath == "", "rootfs_path", "empty", "must not be empty")
	p.text("image", b.Image)
	p.hostPath("rootfs_path", b.RootfsPath)
	d.boxMembers.check(b, p)
}

func (d *execMembers) request() ExecRequest {
	r := ExecRequest{Input: or(d.Stdin, ""), Open: or(d.StdinOpen, false)}
	r.Exec = Exec{
		Cmd: or(d.Cmd, nil), TTY: or(d.TTY, false), Cols: or(d.Cols, 0), Rows: or(d.Rows, 0),
		Stdin: d.Stdin != nil || r.Open, Timeout: time.Duration(or(d.TimeoutMS, 0)) * time.Millisecond,
	}
	return r
}

func (d *execMembers) check(r ExecRequest, p *problems) {
	timeout := or(d.TimeoutMS, 0)
	p.Within("timeout_ms", timeout, 0, maxInt32)
	r.Exec.Timeout = 0 // checked above, as timeout_ms
	if d.Cmd != nil {
		p.command(r.Exec.Cmd)
	}
	r.Exec.checkSettings(p)
	p.When(d.Stdin != nil && r.Open, "stdin", "one_of", "must not be given with stdin_open")
}

// command is a list of arguments. It is read from a list, or from one string,
// which becomes a command line for the shell.
type command []string

// UnmarshalJSONFrom implements the interface through which package json reads c.
func (c *command) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		var line string
		if err := json.UnmarshalDecode(dec, &line); err != nil {
			return err
		}
		if strings.TrimSpace(line) != "" { // a blank string names no command
			*c = command{"/bin/sh", "-c", line}
		}
		return nil
	}
	if dec.PeekKind() != '[' {
		return errCommand
	}
	var args []text
	if err := json.UnmarshalDecode(dec, &args); err != nil {
		return err
	}
	*c = plain(args)
	return nil
}
