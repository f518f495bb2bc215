package e2b

import (
	"context"
	"net/http"
	"path"
	"strings"
	"sync"

	"sandbox/core"
	"sandbox/core/options"
)

// defaultUser is the user that SDKs mean when they name none. It is made in a box
// that does not have it.
const defaultUser = "user"

// account is a user of a box.
type account struct {
	name, home string
}

// under returns a path as E2B reads it: a relative one, and what follows ~, is below
// the user's home.
func (a account) under(name string) string {
	switch {
	case name == "" || name == "~":
		return a.home
	case strings.HasPrefix(name, "~/"):
		return path.Join(a.home, name[2:])
	case !strings.HasPrefix(name, "/"):
		return path.Join(a.home, name)
	}
	return name
}

// accounts remembers the accounts of boxes, so that a box is asked once for each. A
// box that is made of the same id again does not come up.
type accounts struct {
	mu    sync.Mutex
	boxes map[string]*boxAccounts
}

// boxAccounts are the accounts of one box. Its lock is held while an account is made.
type boxAccounts struct {
	mu    sync.Mutex
	known map[string]account

	contexts  sync.Mutex // held while a context that runs code is looked for and made
	extending sync.Mutex // held while the box is given more time
}

const (
	maxAccountBoxes = core.MaxBoxes
	maxAccounts     = 64 // of one box
)

// of returns the accounts of a box. When there are too many boxes all are forgotten,
// which also drops those that were removed.
func (a *accounts) of(box string) *boxAccounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.boxes == nil || len(a.boxes) >= maxAccountBoxes && a.boxes[box] == nil {
		a.boxes = map[string]*boxAccounts{}
	}
	if a.boxes[box] == nil {
		a.boxes[box] = &boxAccounts{known: map[string]account{}}
	}
	return a.boxes[box]
}

// forget forgets a box that was removed.
func (a *accounts) forget(box string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.boxes, box)
}

// named returns the user that a request names: by its password's user name, as calls
// do, or in its query.
func named(r http.Header, query string) string {
	if name, _, ok := (&http.Request{Header: r}).BasicAuth(); ok && name != "" {
		return name
	}
	if query != "" {
		return query
	}
	return defaultUser
}

// account returns a user of a box by its name. Errors: InvalidArgument (the box does
// not have it), and those of files of a box.
func (s *Server) account(ctx context.Context, box *core.Box, name string) (account, error) {
	known := s.accounts.of(box.ID())
	known.mu.Lock()
	defer known.mu.Unlock()
	if a, ok := known.known[name]; ok {
		return a, nil
	}
	u, err := box.User(ctx, options.User{Name: name, Make: name == defaultUser})
	if err == nil && len(known.known) < maxAccounts {
		known.known[name] = account{u.Name, u.Home}
	}
	return account{u.Name, u.Home}, err
}
