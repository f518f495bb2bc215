package options

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/fault"
)

// What can become of a box whose time has come.
const (
	ExpiryStop   = "stop" // with auto_remove it is removed
	ExpiryPause  = "pause"
	ExpiryRemove = "remove"
)

// MaxTTLSeconds is the longest time that a box can be given, with and without use:
// a year.
const MaxTTLSeconds = 365 * 24 * 60 * 60

// Update is a change of the options of a box. What is nil stays as it is.
type Update struct {
	TTLSeconds  *int    // 0: none
	IdleSeconds *int    // without use; 0: none
	OnExpiry    *string // one of the words above
	AutoStart   *bool   // see Box.AutoStart
}

// Apply returns the options with the change.
func (u Update) Apply(b Box) Box {
	b.TTLSeconds = or(u.TTLSeconds, b.TTLSeconds)
	b.IdleSeconds = or(u.IdleSeconds, b.IdleSeconds)
	b.OnExpiry = or(u.OnExpiry, b.OnExpiry)
	b.AutoStart = or(u.AutoStart, b.AutoStart)
	return b
}

// Check returns an error that names everything that is wrong with u, or nil.
// Errors: InvalidArgument, with fields.
func (u Update) Check() error {
	var p problems
	u.check(&p)
	return p.Err(fault.InvalidArgument)
}

func (u Update) check(p *problems) {
	u.Apply(Box{}).checkLife(p)
	p.When(u.OnExpiry != nil && *u.OnExpiry == "", "on_expiry", "value", "must be %s, %s or %s", ExpiryStop, ExpiryPause, ExpiryRemove)
}

// checkLife checks how long the box may live.
func (b Box) checkLife(p *problems) {
	p.Within("ttl_seconds", b.TTLSeconds, 0, MaxTTLSeconds)
	p.Within("idle_seconds", b.IdleSeconds, 0, MaxTTLSeconds)
	if b.OnExpiry != "" {
		p.OneOf("on_expiry", b.OnExpiry, ExpiryStop, ExpiryPause, ExpiryRemove)
	}
}

// updateDocument is the document that changes a box. A member that is null asks for
// the default; one that is absent leaves the box as it is.
type updateDocument struct {
	TTLSeconds  given[int]    `json:"ttl_seconds"`
	IdleSeconds given[int]    `json:"idle_seconds"`
	OnExpiry    given[string] `json:"on_expiry"`
	AutoStart   given[bool]   `json:"auto_start"`
}

// given is a member that tells null from absent.
type given[T any] struct {
	is    bool
	value *T // nil for null
}

// UnmarshalJSONFrom implements the interface through which package json reads g.
func (g *given[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	g.is = true
	return json.UnmarshalDecode(dec, &g.value)
}

// or returns the value, or what null stands for. It returns nil where the member is
// absent.
func (g given[T]) or(null T) *T {
	if g.is && g.value == nil {
		return &null
	}
	return g.value
}

// DecodeUpdate reads the document that changes a box, as strictly as [Decode].
// Errors: Malformed and InvalidArgument, with fields.
func DecodeUpdate(doc []byte) (Update, error) {
	var d updateDocument
	var p problems
	if err := p.Read(doc, &d, MaxDocument); err != nil {
		return Update{}, err
	}
	u := Update{TTLSeconds: d.TTLSeconds.or(0), IdleSeconds: d.IdleSeconds.or(0), OnExpiry: d.OnExpiry.or(ExpiryStop), AutoStart: d.AutoStart.or(false)}
	u.check(&p)
	for name, seconds := range map[string]*int{"ttl_seconds": d.TTLSeconds.value, "idle_seconds": d.IdleSeconds.value} {
		p.When(seconds != nil && *seconds == 0, name, "range", "is 0 and must be at least 1; null is none")
	}
	return u, p.Err(fault.InvalidArgument)
}
