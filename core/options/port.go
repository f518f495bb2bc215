package options

import (
	"sandbox/core/document"
	"sandbox/core/fault"
)

// MaxPort is the highest port, and also the most columns and rows of a terminal.
const MaxPort = 1<<16 - 1

// CheckPort refuses what is no TCP port. Errors: InvalidArgument.
func CheckPort(port int) error {
	var p document.Problems
	p.Within("port", port, 1, MaxPort)
	return p.Err(fault.InvalidArgument)
}
