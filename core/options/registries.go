package options

import (
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
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
	if doc == nil {
		return nil, nil
	}
	list, err := decodeRegistries(doc)
	if err != nil { // of whatever kind: it is part of a configuration
		f := fault.Of(err)
		f.Kind = fault.Config
		return nil, f
	}
	return list, nil
}

func decodeRegistries(doc []byte) ([]Registry, error) {
	var list []Registry
	p := problems{document.Problems{Prefix: "invalid registries JSON: "}}
	if err := p.Read(doc, &list, MaxDocument); err != nil {
		return nil, err
	}
	hosts := map[string]bool{}
	for i, r := range list {
		at := fmt.Sprintf("[%d].", i)
		p.When(hosts[r.Host], at+"host", "duplicate", "%q is given twice", r.Host)
		hosts[r.Host] = true
		r.check(&p, at)
	}
	return list, p.Err(fault.Config)
}

func (r Registry) check(p *problems, at string) {
	u, err := url.Parse("//" + r.Host)
	p.When(err != nil || u.Host != r.Host || u.Hostname() == "", at+"host", "host", "must be a host or host:port")
	p.OneOf(at+"transport", r.Transport, TransportHTTPS, TransportHTTP)
	p.When(r.Password != "" && r.Username == "", at+"username", "required", "is missing beside password")
	p.When(r.BearerToken != "" && r.Username != "", at+"bearer_token", "one_of", "can't stand beside username")
}
