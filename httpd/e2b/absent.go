package e2b

import (
	"net/http"

	"sandbox/core/fault"
)

const noTemplates = "templates are not built here: a template is an image or an alias of one, which sandbox images pull and import bring"

// absent is a route of E2B's that this server does not have.
func absent(why string) plain {
	return func(http.ResponseWriter, *http.Request) error { return absence(why) }
}

// noRoute answers for all other paths.
func noRoute(_ http.ResponseWriter, r *http.Request) error {
	return fault.New(fault.NotFound, "no route %s %s of E2B's is known here", r.Method, r.URL.Path)
}

// absence is the failure of what this server does not have.
func absence(why string) error { return fault.New(fault.Unsupported, "unimplemented: %s", why) }
