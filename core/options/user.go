package options

import (
	"strings"

	"sandbox/core/fault"
)

// User says which user of a box is looked for.
type User struct {
	Name string
	Make bool // make the user, with a group and a home, if the box does not have it
}

// MaxUserName is how many characters the name of a user may have.
const MaxUserName = 32

// Check reports all that is wrong with u. Errors: InvalidArgument, with fields.
func (u User) Check() error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}
	var p problems
	p.When(u.Name == "" || len(u.Name) > MaxUserName, "name", "length", "must have 1 to %d characters", MaxUserName)
	p.When(strings.ContainsFunc(u.Name, odd) || strings.HasPrefix(u.Name, "-") || strings.Trim(u.Name, ".") == "", "name", "value", "must be letters, digits, _, . or -")
	return p.Err(fault.InvalidArgument)
}
