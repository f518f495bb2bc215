package options

import (
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/ids"
)

// Code is code to be run in a context of a box.
type Code struct {
	Code     string
	Language api.Language // "" for that of the context, and for Python without one
	Context  string       // its id; "" for the one that the language has of its own
	// Env are variables of the environment that only this run sees.
	Env     map[string]string
	Timeout time.Duration // until the code is interrupted; 0: none
}

// CodeContext is a context to be made.
type CodeContext struct {
	Language         api.Language // "" for Python
	WorkingDir, User string       // as in [Exec]
	Env              map[string]string
}

// codeDocument is the body that runs code.
type codeDocument struct {
	Code      *string `json:"code"`
	Language  *string `json:"language"`
	Context   *string `json:"context"`
	Env       *env    `json:"env"`
	TimeoutMS *int    `json:"timeout_ms"`
}

// contextDocument is the body that makes a context.
type contextDocument struct {
	Language   *string `json:"language"`
	WorkingDir *string `json:"working_dir"`
	User       *string `json:"user"`
	Env        *env    `json:"env"`
}

// DecodeCode reads the document that runs code, as strictly as [Decode]. Errors:
// Malformed and InvalidArgument, with fields.
func DecodeCode(doc []byte) (Code, error) {
	var d codeDocument
	var p problems
	if err := p.Read(doc, &d, MaxCommand); err != nil {
		return Code{}, err
	}
	p.Required("code", d.Code != nil)
	timeout := or(d.TimeoutMS, 0)
	p.Within("timeout_ms", timeout, 0, maxInt32)
	c := Code{
		Code: or(d.Code, ""), Language: api.Language(or(d.Language, "")), Context: or(d.Context, ""), Env: or(d.Env, nil),
	}
	c.check(&p)
	c.Timeout = time.Duration(timeout) * time.Millisecond
	return c, p.Err(fault.InvalidArgument)
}

// DecodeCodeContext reads the document that makes a context, as strictly as [Decode].
// Errors: Malformed and InvalidArgument, with fields.
func DecodeCodeContext(doc []byte) (CodeContext, error) {
	var d contextDocument
	var p problems
	if err := p.Read(doc, &d, MaxDocument); err != nil {
		return CodeContext{}, err
	}
	c := CodeContext{
		Language: api.Language(or(d.Language, string(api.Python))), WorkingDir: or(d.WorkingDir, ""), User: or(d.User, ""), Env: or(d.Env, nil),
	}
	c.check(&p)
	return c, p.Err(fault.InvalidArgument)
}

// Check returns an error that names everything that is wrong with c, or nil. Errors:
// InvalidArgument, with fields.
func (c Code) Check() error {
	var p problems
	c.check(&p)
	return p.Err(fault.InvalidArgument)
}

func (c Code) check(p *problems) {
	p.When(strings.ContainsRune(c.Code, 0), "code", "value", "must not contain NUL")
	p.language(c.Language)
	p.When(c.Context != "" && !IsCodeContext(c.Context), "context", "value", "must be the id of a context, or left out")
	p.env(c.Env)
	p.When(c.Timeout < 0, "timeout_ms", "range", "must not be negative")
	own := api.Language(c.Context)
	p.When(c.Language != "" && own.Known() && own != c.Language, "language", "value", "must be that of the context, or left out")
}

// Check returns an error that names everything that is wrong with c, or nil. Errors:
// InvalidArgument, with fields.
func (c CodeContext) Check() error {
	var p problems
	c.check(&p)
	return p.Err(fault.InvalidArgument)
}

func (c CodeContext) check(p *problems) {
	p.language(c.Language)
	p.absolute("working_dir", c.WorkingDir)
	p.text("user", c.User)
	p.env(c.Env)
}

// language checks a language, which may be left out.
func (p *problems) language(l api.Language) {
	p.When(l != "" && !l.Known(), "language", "value", "must be %s, %s or %s", api.Python, api.JavaScript, api.Bash)
}

// IsCodeContext tells whether id can be that of a context.
func IsCodeContext(id string) bool { return api.Language(id).Known() || ids.Context.Valid(id) }
