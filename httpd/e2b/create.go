package e2b

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// newSandbox is the document that makes a box.
type newSandbox struct {
	Template   string            `json:"templateID"`
	Timeout    *int              `json:"timeout"` // seconds
	AutoPause  bool              `json:"autoPause"`
	PauseMode  *bool             `json:"autoPauseMemory"`
	Metadata   map[string]string `json:"metadata"`
	Env        map[string]string `json:"envVars"`
	Internet   *bool             `json:"allow_internet_access"`
	Network    *network          `json:"network"`
	MCP        jsontext.Value    `json:"mcp"`
	IAM        jsontext.Value    `json:"iam"`
	Volumes    []jsontext.Value  `json:"volumeMounts"`
	AutoResume struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
}

// network is what a box may reach, and what reaches it.
type network struct {
	AllowOut   []string       `json:"allowOut"`
	DenyOut    []string       `json:"denyOut"`
	DNSServers []string       `json:"dnsServers"`
	Proxy      jsontext.Value `json:"egressProxy"`
	Rules      jsontext.Value `json:"rules"`
	MaskHost   string         `json:"maskRequestHost"`
	Public     *bool          `json:"allowPublicTraffic"`
}

const (
	defaultTimeout = 15 // seconds, of a create that names none
	everywhere     = "0.0.0.0/0"
)

// createBox makes a box.
func (s *Server) createBox(w http.ResponseWriter, r *http.Request) error {
	var asked newSandbox
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	if err := asked.refuseAbsent(); err != nil {
		return err
	}
	o, err := s.options(asked)
	if err != nil {
		return err
	}
	_, rec, err := s.Runtime.CreateOnce(r.Context(), s.idFor(r), o)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, s.reached(r, rec))
}

// refuseAbsent refuses what this server can't do, rather than to leave it out
// silently. Errors: Unsupported.
func (n newSandbox) refuseAbsent() error {
	switch {
	case given(n.MCP):
		return absence("no MCP gateway runs in boxes: sandbox mcp offers boxes as tools")
	case given(n.IAM):
		return absence("boxes have no workload identities")
	case len(n.Volumes) > 0:
		return absence("E2B's volumes are not here: boxes made through the native API have host directories as volumes")
	case n.PauseMode != nil && !*n.PauseMode:
		return absence("a pause keeps the memory where it is")
	case n.Network != nil:
		return n.Network.refuseAbsent()
	}
	return nil
}

func (n network) refuseAbsent() error {
	if len(n.AllowOut)+len(n.DNSServers) > 0 || given(n.Proxy) || given(n.Rules) || n.MaskHost != "" || len(n.DenyOut) > 0 && !n.none() {
		return absence("the network of a box is open or closed as a whole: give allow_internet_access, or deny_out with " + everywhere + " alone")
	}
	return nil
}

// none tells whether nothing may be reached.
func (n *network) none() bool { return n != nil && slices.Equal(n.DenyOut, []string{everywhere}) }

// given tells whether a member has a value that says something.
func given(v jsontext.Value) bool {
	text := strings.TrimSpace(string(v))
	return text != "" && text != "null" && text != "{}"
}

// options returns the options of the box that is asked for. Errors: InvalidArgument.
func (s *Server) options(n newSandbox) (options.Box, error) {
	o := options.Defaults()
	o.Image, o.Labels, o.Env, o.AutoRemove = s.image(n.Template), n.labels(), n.Env, false
	o.TTLSeconds, o.OnExpiry, o.AutoStart = defaultTimeout, *expiry(n.AutoPause), n.AutoResume.Enabled
	if n.Timeout != nil {
		o.TTLSeconds = *n.Timeout
	}
	if n.Internet != nil && !*n.Internet || n.Network.none() {
		o.Network = options.NetworkNone
	}
	if o.TTLSeconds == 0 {
		return o, fault.New(fault.InvalidArgument, "the timeout must be at least 1 second")
	}
	if err := o.Check(); err != nil {
		return o, err
	}
	var p document.Problems
	return o, cmp.Or(s.Runtime.CheckLimits(&o, &p), p.Err(fault.InvalidArgument))
}

// expiry returns what becomes of a box when its time has come.
func expiry(pause bool) *string {
	what := options.ExpiryRemove
	if pause {
		what = options.ExpiryPause
	}
	return &what
}

// image returns the image of a template. The templates that SDKs name when their
// user names none are the default image, unless an alias says otherwise.
func (s *Server) image(template string) string {
	if _, ok := s.Aliases()[template]; !ok && slices.Contains([]string{"", "base", "code-interpreter-v1"}, template) {
		return options.DefaultImage
	}
	return template
}

// idFor returns the id of the box that a request makes. Requests with one
// Idempotency-Key have the same, so that a second one returns the box of the first.
func (s *Server) idFor(r *http.Request) string {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		return ids.Box.New()
	}
	mac := hmac.New(sha256.New, s.Secret)
	mac.Write([]byte("e2b:create:" + key))
	text := strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)))
	return string(ids.Box) + text[:len(ids.Box.New())-len(ids.Box)]
}
