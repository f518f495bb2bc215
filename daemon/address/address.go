// Package address has the file in which a daemon says where it listens, for those
// that look for the daemon of a home.
package address

import (
	"errors"
	"io/fs"
	"path/filepath"

	"sandbox/core/store"
)

// Address says where the daemon of a home listens, or listened when it last ran.
type Address struct {
	URL     string `json:"url,omitempty"` // base of its routes over TCP, with /api if Hosted; "" without TCP
	Socket  string `json:"socket"`
	Prefix  string `json:"prefix,omitempty"`
	Hosted  bool   `json:"hosted,omitempty"`
	Profile string `json:"profile,omitempty"` // name of the profile with the administrator's key
}

// Shared is where the service of Debian's package has its socket, for users who may
// not enter root's home.
const Shared = "/run/sandbox.sock"

// key names the one record of its directory.
const key = "address"

func file(home string) store.Dir[Address] {
	return store.Dir[Address]{Path: filepath.Join(home, "daemon")}
}

// Read returns the address of the home's daemon, or the zero value if the home never
// had one. It does not say whether the daemon runs: only connecting to its socket
// can tell. Errors: Storage.
func Read(home string) (Address, error) {
	a, err := file(home).Get(key)
	if errors.Is(err, fs.ErrNotExist) {
		return Address{}, nil
	}
	return a, err
}

// Write writes the address of the home's daemon. Errors: Storage.
func Write(home string, a Address) error { return file(home).Put(key, a, true) }
