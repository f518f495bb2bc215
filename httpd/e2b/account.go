package e2b

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"sandbox/core"
	"sandbox/core/fault"
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
	if name == "root" {
		return account{name, "/root"}, nil
	}
	known := s.accounts.of(box.ID())
	known.mu.Lock()
	defer known.mu.Unlock()
	if a, ok := known.known[name]; ok {
		return a, nil
	}
	a, err := lookUp(ctx, box, name)
	if err == nil && len(known.known) < maxAccounts {
		known.known[name] = a
	}
	return a, err
}

// lookUp reads a user from the box's /etc/passwd, and makes the default user if it is
// not there.
func lookUp(ctx context.Context, box *core.Box, name string) (account, error) {
	users, err := readTable(ctx, box, "/etc/passwd")
	if err != nil {
		return account{}, err
	}
	if fields := users.find(name); len(fields) > 5 {
		return account{name, fields[5]}, nil
	}
	if name != defaultUser {
		return account{}, fault.New(fault.InvalidArgument, "the sandbox has no user %q", name)
	}
	return makeUser(ctx, box, users)
}

// table is the text of /etc/passwd or /etc/group.
type table []byte

// maxTable bounds the tables, which are the box's own, in bytes.
const maxTable = 1 << 20

// readTable reads a table; one that is missing is empty. Errors: ResourceExhausted,
// and those of files of a box.
func readTable(ctx context.Context, box *core.Box, name string) (table, error) {
	file, err := box.Download(ctx, options.Download{Path: name})
	if fault.Is(err, fault.FileNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTable+1))
	if err == nil && len(text) > maxTable {
		err = fault.New(fault.ResourceExhausted, "the sandbox's %s is larger than %d bytes", name, maxTable)
	}
	return text, err
}

// find returns the fields of the line of a name, or nil.
func (t table) find(name string) []string {
	for line := range bytes.Lines(t) {
		fields := strings.Split(strings.TrimRight(string(line), "\n"), ":")
		if fields[0] == name {
			return fields
		}
	}
	return nil
}

// uses tells whether the third field of a line is this id.
func (t table) uses(id int) bool {
	for line := range bytes.Lines(t) {
		fields := strings.SplitN(string(line), ":", 4)
		if len(fields) > 2 && fields[2] == strconv.Itoa(id) {
			return true
		}
	}
	return false
}

// with returns the table with one more line.
func (t table) with(line string) table {
	text := bytes.Clone(t)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return append(text, line+"\n"...)
}

// firstID is the first id that distributions give to people.
const firstID = 1000

// makeUser makes the default user, with a group and a home of its own. It uses no
// program of the box, since an image may have none.
func makeUser(ctx context.Context, box *core.Box, users table) (account, error) {
	groups, err := readTable(ctx, box, "/etc/group")
	if err != nil {
		return account{}, err
	}
	id := firstID
	for users.uses(id) || groups.uses(id) {
		id++
	}
	made := account{defaultUser, "/home/" + defaultUser}
	if err := makeHome(ctx, box, made.home, id); err != nil {
		return account{}, err
	}
	if err := writeTable(ctx, box, "/etc/group", groups.with(fmt.Sprintf("%s:x:%d:", made.name, id))); err != nil {
		return account{}, err
	}
	line := fmt.Sprintf("%s:x:%d:%d::%s:/bin/bash", made.name, id, id, made.home)
	return made, writeTable(ctx, box, "/etc/passwd", users.with(line))
}

func writeTable(ctx context.Context, box *core.Box, name string, t table) error {
	_, err := box.Upload(ctx, core.Upload{Dest: name}, bytes.NewReader(t))
	return err
}

// makeHome makes a directory that belongs to the user of an id, unless there is one.
// Root can't give a directory away through these operations. So the user makes it, in
// a directory that all may write, and root moves it to its place.
func makeHome(ctx context.Context, box *core.Box, home string, id int) error {
	if _, err := box.StatFile(ctx, options.StatFile{Path: home}); !fault.Is(err, fault.FileNotFound) {
		return err
	}
	everyone, own := 0o777, 0o755
	porch := path.Join(path.Dir(home), ".e2b")
	if _, err := box.MakeDirectory(ctx, options.MakeDirectory{Path: porch, Mode: &everyone}); err != nil {
		return err
	}
	inside := path.Join(porch, path.Base(home))
	if _, err := box.MakeDirectory(ctx, options.MakeDirectory{Path: inside, Mode: &own, User: fmt.Sprintf("%d:%d", id, id)}); err != nil {
		return err
	}
	if _, err := box.MoveFile(ctx, options.MoveFile{From: inside, To: home}); err != nil {
		return err
	}
	_, err := box.RemoveFile(ctx, options.RemoveFile{Path: porch, Recursive: true})
	return err
}
