package reference

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// description is what the page shows of an OpenAPI document.
type description struct {
	Info       struct{ Title, Version, Summary, Description string }
	Security   []map[string][]string
	Tags       []group
	Paths      yaml.Node
	Components struct {
		Parameters map[string]parameter
		Responses  map[string]response
		Schemas    yaml.Node
	}
}

// group holds the operations of a tag.
type group struct {
	Name, Description string
	Operations        []operation `yaml:"-"`
}

type operation struct {
	Method, Path string `yaml:"-"`

	ID                   string `yaml:"operationId"`
	Tags                 []string
	Summary, Description string
	Security             *[]map[string][]string
	Parameters           []parameter
	Body                 struct {
		Required bool
		Content  map[string]media
	} `yaml:"requestBody"`
	Responses map[string]response

	Replies []reply `yaml:"-"`
}

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name, In    string
	Required    bool
	Description string
	Schema      yaml.Node
	Example     any
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Content     map[string]media
}

type media struct {
	Schema   yaml.Node
	Example  any
	Examples map[string]struct{ Value any }
}

// reply is a response under its status.
type reply struct {
	Status string
	response
}

// pair is a member of an object, in the document's order.
type pair[T any] struct {
	Name  string
	Value T
}

// pairs returns the members of an object. A member that is no T is left out.
func pairs[T any](object yaml.Node) (all []pair[T]) {
	for i := 0; i+1 < len(object.Content); i += 2 {
		one := pair[T]{Name: object.Content[i].Value}
		if object.Content[i+1].Decode(&one.Value) == nil {
			all = append(all, one)
		}
	}
	return all
}

// groups returns the tags with their operations.
func (d *description) groups() ([]group, error) {
	for _, path := range pairs[yaml.Node](d.Paths) {
		var shared struct{ Parameters []parameter }
		if err := path.Value.Decode(&shared); err != nil {
			return nil, fmt.Errorf("read the parameters of %s: %w", path.Name, err)
		}
		for _, method := range pairs[operation](path.Value) {
			o := method.Value
			o.Method, o.Path = strings.ToUpper(method.Name), path.Name
			o.Parameters = slices.Concat(shared.Parameters, o.Parameters)
			at := slices.IndexFunc(d.Tags, func(g group) bool { return len(o.Tags) == 1 && g.Name == o.Tags[0] })
			if at < 0 || o.ID == "" {
				return nil, fmt.Errorf("%s %s has no operationId, or not one known tag", o.Method, o.Path)
			}
			d.resolve(&o)
			d.Tags[at].Operations = append(d.Tags[at].Operations, o)
		}
	}
	return d.Tags, nil
}

// resolve puts what an operation refers to into it, and sorts its replies.
func (d *description) resolve(o *operation) {
	for i, p := range o.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			o.Parameters[i] = d.Components.Parameters[name]
		}
	}
	for status, r := range o.Responses {
		if name, ok := strings.CutPrefix(r.Ref, "#/components/responses/"); ok {
			r = d.Components.Responses[name]
		}
		o.Replies = append(o.Replies, reply{status, r})
	}
	slices.SortFunc(o.Replies, func(a, b reply) int { return cmp.Compare(a.Status, b.Status) })
	if o.Security == nil {
		o.Security = &d.Security
	}
}

// Needs says which key an operation needs.
func (o operation) Needs() string {
	var names []string
	for _, scheme := range *o.Security {
		names = append(names, scheme["apiKey"]...)
	}
	switch {
	case len(*o.Security) == 0:
		return "no key"
	case names == nil:
		return "any key"
	}
	return "a key with " + strings.Join(names, ", ")
}
