package shim

import (
	"cmp"
	"log/slog"
	"slices"

	"sandbox/core/engine/shim/namespaces"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/core/userns"
)

// oneID tells why boxes have the id 0 alone, which is the user's own, and is "" where they
// have the others, too. All files of layers are root's then, and there is no other user.
var oneID string

// takeIDs notes which ids the namespace has. They are those that the user had when it was made.
func takeIDs(given namespaces.Given, log *slog.Logger) {
	if !userns.OneID() {
		return
	}
	oneID = cmp.Or(given.WhyIDs, "boxes have no user but root, until the last one has ended: ids were given to this user since")
	log.Warn(oneID)
}

// checkUser refuses a box with a user that there is not.
func checkUser(o options.Box) error {
	if oneID == "" || slices.Contains([]string{"", "0", "root", "0:0", "root:root", "0:root", "root:0"}, o.User) {
		return nil
	}
	return fault.New(fault.Unsupported, "user %q: %s", o.User, oneID)
}
