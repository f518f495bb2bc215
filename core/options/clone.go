package options

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// MaxClones is how many boxes one request clones.
const MaxClones = 100

// Clone asks for boxes that are like another one, with the files of a snapshot of it.
type Clone struct {
	N          int    // how many, from 1 to MaxClones; 0 for 1
	NamePrefix string // the names are this with -1, -2 and so on behind it; "" for boxes without a name
	Snapshot   string // a snapshot of the box; "" to take one now
	Options    []byte // a JSON object with members of a create's body that the clones have otherwise; nil for none
}

// cloneDocument is the REST body that clones a box.
type cloneDocument struct {
	N          *int           `json:"n"`
	NamePrefix *string        `json:"name_prefix"`
	Snapshot   *string        `json:"snapshot"`
	Options    jsontext.Value `json:"options"`
}

// cloneOptions are the members in which a clone may differ from its box.
type cloneOptions struct {
	boxMembers
	User     *string `json:"user"`
	Hostname *string `json:"hostname"`
	Labels   *object `json:"labels"`
}

// DecodeClone reads a REST body that clones a box, as strictly as [Decode]. Errors:
// Malformed and InvalidArgument, with fields.
func DecodeClone(doc []byte) (Clone, error) {
	var d cloneDocument
	var p problems
	if err := p.Read(doc, &d, MaxDocument); err != nil {
		return Clone{}, err
	}
	if d.Options.Kind() == 'n' { // null is as good as nothing
		d.Options = nil
	}
	p.When(d.Snapshot != nil && *d.Snapshot == "", "snapshot", "empty", "must not be empty")
	c := Clone{or(d.N, 1), or(d.NamePrefix, ""), or(d.Snapshot, ""), d.Options}
	p.When(d.N != nil && *d.N == 0, "n", "range", "is 0 and must be at least 1")
	c.check(&p)
	return c, p.Err(fault.InvalidArgument)
}

// Check returns an error that names everything that is wrong with c, or nil. Errors:
// InvalidArgument, with fields.
func (c Clone) Check() error {
	var p problems
	c.check(&p)
	return p.Err(fault.InvalidArgument)
}

func (c Clone) check(p *problems) {
	p.Within("n", c.N, 0, MaxClones)
	p.text("name_prefix", c.NamePrefix)
}

// Apply returns the options of the clones of a box that has the options b, without a name.
// Published ports are chosen anew. Errors: Malformed and InvalidArgument, with fields, and
// those of the host's checks.
func (c Clone) Apply(b Box, host ...HostCheck) (Box, error) {
	var d cloneOptions
	p := problems{document.Problems{Prefix: "options of the clones: "}}
	if c.Options != nil {
		if err := p.Read(c.Options, &d, MaxDocument); err != nil {
			return Box{}, err
		}
	}
	d.missing(&p)
	b.Name = ""
	given := b.Ports
	b.Ports = nil
	for _, q := range given {
		q.HostPort = 0
		b.Ports = append(b.Ports, q)
	}
	if d.Volumes != nil {
		b.Volumes = nil
	}
	if d.Ports != nil {
		b.Ports = nil
	}
	d.fill(&b)
	b.User, b.Hostname, b.Labels = or(d.User, b.User), or(d.Hostname, b.Hostname), or(d.Labels, b.Labels)
	d.check(b, &p)
	err := p.host(&b, host)
	if failed := p.Err(fault.InvalidArgument); failed != nil {
		err = failed
	}
	return b, err
}

// Name returns the name of the clone with a number, from 1 on.
func (c Clone) Name(i int) string {
	if c.NamePrefix == "" {
		return ""
	}
	return fmt.Sprintf("%s-%d", c.NamePrefix, i)
}

// Diff asks for what has changed on the disk of a box.
type Diff struct {
	From      string // a snapshot of the box; "" for the image that it was made of
	PageSize  int    // how many changes a page has at the most; 0 means MaxFilePage
	PageToken string // the page behind an earlier one; "" for the first
}

// Check returns an error that names everything that is wrong with o, or nil. Errors:
// InvalidArgument, with fields.
func (o Diff) Check() error {
	var p problems
	p.Within("page_size", o.PageSize, 0, MaxFilePage)
	p.text("from", o.From)
	_, err := o.After()
	p.When(err != nil, "page_token", "value", "must be a next_page_token of an earlier page")
	return p.Err(fault.InvalidArgument)
}

// After returns the path behind which the page begins; "" for the first page. Errors:
// InvalidArgument.
func (o Diff) After() (string, error) {
	after, err := ListFiles{PageToken: o.PageToken}.After()
	if after != "" {
		after = "/" + after
	}
	return after, err
}
