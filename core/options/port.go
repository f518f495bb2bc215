package options

import (
	"sandbox/core/document"
	"sandbox/core/fault"
)

// CheckPort refuses what is no TCP port. Errors: InvalidArgument.
func CheckPort(port int) error {
	var p document.Problems
	p.Within("port", port, 1, maxPort)
	return p.Err(fault.InvalidArgument)
}
