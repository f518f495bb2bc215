package httpd

import (
	"strings"

	"github.com/julienschmidt/httprouter"

	"sandbox/auth"
	"sandbox/core/fault"
)

// lookUp finds the handler of an escaped path. In hosted mode the routes lie under
// /api. A path outside of it is misplaced then, and so is one with the prefix of a
// self-hosted server: a client has the wrong address. Its 404 comes before
// authentication, and its body has a member detail.
func (s *Server) lookUp(t *table, path string, by Entrance) (handle httprouter.Handle, params httprouter.Params, misplaced bool) {
	if !s.Hosted {
		handle, params = t.find(path)
		return handle, params, false
	}
	inside, under := strings.CutPrefix(path, "/api/")
	if under {
		handle, params = t.find("/" + inside)
		return handle, params, handle == nil && prefixed(t, "/"+inside) && !s.underObservability(path)
	}
	// Clients of the Unix socket are on this host and need not know of /api, and the
	// web console has a place of its own for it.
	if by != ByKey || !strings.HasPrefix(path, "/v1/") {
		handle, params = t.find(path)
	}
	return handle, params, handle == nil
}

// prefixed reports whether a path would be a route without the segment after /v1.
func prefixed(t *table, path string) bool {
	rest, ok := strings.CutPrefix(path, "/v1/")
	_, rest, behind := strings.Cut(rest, "/")
	if !ok || !behind {
		return false
	}
	handle, _ := t.find("/v1/" + rest)
	return handle != nil
}

// mounts returns the paths that a path is registered under. With a prefix, boxes
// are found under the prefix alone, and the rest of /v1 with and without it.
func mounts(path, prefix string) []string {
	rest, versioned := strings.CutPrefix(path, "/v1/")
	if prefix == "" || !versioned {
		return []string{path}
	}
	prefixed := "/v1/" + prefix + "/" + rest
	if noun, _, _ := strings.Cut(rest, "/"); noun == "boxes" {
		return []string{prefixed}
	}
	return []string{path, prefixed}
}

// checkPrefix refuses a prefix that is not one segment of a path, or that is the
// beginning of a route. Errors: Config.
func (c Config) checkPrefix() error {
	switch {
	case c.Prefix == "":
		return nil
	case c.Hosted:
		return fault.New(fault.Config, "--prefix is for self-hosted servers: leave out --prefix or --hosted")
	case !auth.ValidEnvironment(c.Prefix) || strings.Trim(c.Prefix, ".") == "":
		return fault.New(fault.Config, "prefix %q: want letters, digits, _, . or -", c.Prefix)
	}
	for _, r := range Routes() {
		noun, _, _ := strings.Cut(strings.TrimPrefix(r.Pattern, "/v1/"), "/")
		if noun == c.Prefix {
			return fault.New(fault.Config, "prefix %q is a route already", c.Prefix)
		}
	}
	return nil
}
