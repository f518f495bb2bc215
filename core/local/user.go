package local

import (
	"os"
	"strings"
)

// Able tells whether boxes can be made in this process: it is root's, or that of a user
// who may make user namespaces. What else may be missing the first box says.
func Able() bool {
	if os.Geteuid() == 0 {
		return true
	}
	most, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	return err == nil && strings.TrimSpace(string(most)) != "0"
}
