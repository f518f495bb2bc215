package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sandbox/core/engine"
	"sandbox/core/engine/rootless"
	"sandbox/core/fault"
)

// userChecks are the checks for a user who is not root: what docs/rootless.md says that
// boxes need then.
var userChecks = []check{
	{"user", false, user},
	{"kernel", true, kernel},
	{"seccomp", true, seccomp},
	{"ids", false, ids},
	{"cgroups", true, given},
	{"home", true, home},
	{"disk", true, disk},
	{"growth", false, growth},
	{"records", false, records},
	{"programs", true, programs},
	{"network", false, connector},
	{"reclaim", false, reclaim},
}

func user(context.Context, engine.Config) (string, *lack) {
	return fmt.Sprintf("uid %d: boxes with the rights of this user; docs/rootless.md says what only root's boxes have", os.Geteuid()), nil
}

// ids looks for the ids that boxes have beside the user's own.
func ids(context.Context, engine.Config) (string, *lack) {
	m, err := rootless.FindMapper()
	if err != nil {
		return "", mended(err)
	}
	return fmt.Sprintf("the user's own, uids from %d, gids from %d", m.UIDs[0].Start, m.GIDs[0].Start), nil
}

// given looks for the cgroups that root has given to the user.
func given(context.Context, engine.Config) (string, *lack) {
	groups, err := rootless.Delegated()
	if argv, _ := rootless.InManager(); err != nil && argv != nil {
		return "the user manager of systemd gives them", nil
	}
	if err != nil {
		return "", mended(err)
	}
	for _, name := range []string{"", "memory"} {
		if dir := groups[name]; dir != "" {
			return "given to this user: " + dir, nil
		}
	}
	return "given to this user", nil
}

func connector(ctx context.Context, _ engine.Config) (string, *lack) {
	c, err := rootless.FindConnector()
	if err != nil {
		return "", mended(err)
	}
	return fmt.Sprintf("%s (%s)", c.Path, c.Version(ctx)), nil
}

// mended returns what an error says is missing, and the command line in it that mends it.
func mended(err error) *lack {
	text := fault.Of(err).Message
	if at := strings.Index(text, ": sudo "); at >= 0 {
		fix, _, _ := strings.Cut(text[at+2:], ", or use")
		fix, _, _ = strings.Cut(fix, " (sudo")
		return &lack{text[:at], fix}
	}
	return &lack{text, "see docs/rootless.md"}
}
