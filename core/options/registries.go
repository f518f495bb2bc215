package options

import (
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/fault"
)

// Transports to a registry.
const (
	TransportHTTPS = "https"
	TransportHTTP  = "http"
)

// Registry is a place where images are pulled from, and how to log in there.
type Registry struct {
	Host        string `json:"host"` // host or host:port
	Transport   string `json:"transport"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	BearerToken string `json:"bearer_token"`
}

// UnmarshalJSONFrom is what package json calls. A string is a host.
func (r *Registry) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*r = Registry{Transport: TransportHTTPS}
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &r.Host)
	}
	type object Registry // without this method
	return json.UnmarshalDecode(dec, (*object)(r), json.RejectUnknownMembers(true))
}

// DecodeRegistries reads a JSON array of hosts, each a string or an object; a
// nil doc is no registries. Errors: Config, with fields.
func DecodeRegistries(doc []byte) ([]Registry, error) {
	const prefix = "invalid registries JSON: "
	if doc == nil {
		return nil, nil
	}
	var list *[]Registry
	if err := decode(doc, &list, prefix, MaxDocument); err != nil {
		f := fault.Of(err)
		return nil, &fault.Error{Kind: fault.Config, Message: f.Message, Fields: f.Fields}
	}
	if list == nil {
		return nil, fault.New(fault.Config, prefix+"must be a list")
	}
	var p problems
	hosts := map[string]bool{}
	for i, r := range *list {
		at := fmt.Sprintf("[%d].", i)
		p.when(hosts[r.Host], at+"host", "duplicate", fmt.Sprintf("%q is given twice", r.Host))
		hosts[r.Host] = true
		r.check(&p, at)
	}
	return *list, p.err(fault.Config, prefix)
}

func (r Registry) check(p *problems, at string) {
	u, err := url.Parse("//" + r.Host)
	p.when(err != nil || u.Host != r.Host || u.Hostname() == "", at+"host", "host", "must be a host or host:port")
	p.oneOf(at+"transport", r.Transport, TransportHTTPS, TransportHTTP)
	p.when(r.Password != "" && r.Username == "", at+"username", "required", "is missing beside password")
	p.when(r.BearerToken != "" && r.Username != "", at+"bearer_token", "one_of", "can't stand beside username")
}
