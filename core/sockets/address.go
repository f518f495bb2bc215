// Package sockets reaches Unix sockets through the descriptor of the directory
// that they lie in: a socket's address holds 107 bytes, and a path to a home
// may be longer.
package sockets

import (
	"os"
	"strconv"
)

// MaxPath is the longest path, in bytes, that fits an address by itself.
const MaxPath = 107

// Address returns the address of the socket name in dir. It is good in this
// process alone, and while dir is open.
func Address(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}
