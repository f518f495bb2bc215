package options

import (
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// The transports that a registry can have.
const (
	TransportHTTPS = "https"
	TransportHTTP  = "http"
)

// Registry is a host that images are pulled from, and the credentials for it.
type Registry struct {
	Host        string `json:"host"` // host or host:port
	Transport   string `json:"transport"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	BearerToken string `json:"bearer_token"`
}

// UnmarshalJSONFrom implements the interface through which package json reads
// r. It reads a string as a host.
func (r *Registry) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*r = Registry{Transport: TransportHTTPS}
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &r.Host)
	}
	type object Registry // has no UnmarshalJSONFrom, which would call itself
	return json.UnmarshalDecode(dec, (*object)(r), json.RejectUnknownMembers(true))
}

// DecodeRegistries reads a JSON array of hosts, each of which is a string or an
// object. For a nil doc it returns no registries. Errors: Config, with fields.
func DecodeRegistries(doc []byte) ([]Registry, error) {
	if doc == nil {
		return nil, nil
	}
	list, err := decodeRegistries(doc)
	if err != nil { // every failure is Config, since doc is part of a configuration
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
	p.When(r.Password != "" && r.Username == "", at+"username", "required", "must be given with password")
	p.When(r.BearerToken != "" && r.Username != "", at+"bearer_token", "one_of", "must not be given with username")
}
