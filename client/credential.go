package client

import (
	"net/http"
	"strings"

	"sandbox/core/fault"
)

// ApiKeyCredential is an API key. However it is printed, it shows only the masked
// form of the key.
//
//nolint:revive // the service's documents call it so
type ApiKeyCredential struct {
	key *string // a pointer, because fmt prints an unexported string field as it is
}

// NewApiKeyCredential wraps a key; "" is no credential.
//
//nolint:revive // the service's documents call it so
func NewApiKeyCredential(key string) ApiKeyCredential {
	if key == "" {
		return ApiKeyCredential{}
	}
	return ApiKeyCredential{&key}
}

// IsZero reports whether there is no key.
func (a ApiKeyCredential) IsZero() bool { return a.key == nil }

// String returns the masked form: the key's prefix, asterisks, and its last three
// characters. Text that does not look like a key is hidden completely.
func (a ApiKeyCredential) String() string {
	const class, shown, hidden = "_live_", 3, 12
	if a.IsZero() {
		return ""
	}
	before, opaque, ok := strings.Cut(*a.key, class)
	if !ok || len(opaque) < hidden {
		return strings.Repeat("*", hidden)
	}
	return before + class + strings.Repeat("*", hidden) + opaque[len(opaque)-shown:]
}

// GoString returns the masked form.
func (a ApiKeyCredential) GoString() string { return a.String() }

// check refuses a key with characters that no header can carry. Its error does not
// quote the key. Errors: Config.
func (a ApiKeyCredential) check() error {
	if a.IsZero() {
		return nil
	}
	for _, r := range *a.key {
		if r <= ' ' || r >= 0x7f {
			return fault.New(fault.Config, "the API key has characters that no key has, such as spaces or line ends")
		}
	}
	return nil
}

func (a ApiKeyCredential) authorize(h http.Header) {
	if !a.IsZero() {
		h.Set("Authorization", "Bearer "+*a.key)
	}
}
