// Package userns tells which ids the user namespace of this process has.
package userns

import (
	"os"
	"strings"
	"sync"
)

// Host tells whether the ids of this process are those of the host, so that root is root.
func Host() bool {
	f, err := mapped()
	return err != nil || len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] != "1"
}

// OneID tells whether there is no other user and group than 0, as where the user who
// makes boxes has no range of ids. No file can have another owner then, and nobody may
// set groups.
func OneID() bool { return oneID() }

// oneID looks once: a process of ours enters its namespace before anything asks.
var oneID = sync.OnceValue(func() bool {
	f, err := mapped()
	return err == nil && len(f) == 3 && f[0] == "0" && f[2] == "1"
})

func mapped() ([]string, error) {
	text, err := os.ReadFile("/proc/self/uid_map")
	return strings.Fields(string(text)), err
}
