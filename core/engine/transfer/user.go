package transfer

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/account"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// lookUpUser returns the home of a user of the box. It makes the user first if it is
// missing and was to be made.
func lookUpUser(name string, make bool) (wire.Moved, error) {
	found, home := false, ""
	account.Each(account.Users, func(f []string) bool {
		found, home = f[0] == name, f[5]
		return !found
	})
	if found {
		if !strings.HasPrefix(home, "/") {
			home = "/"
		}
		return wire.Moved{Path: home}, nil
	}
	if !make {
		return wire.Moved{}, fault.New(fault.InvalidArgument, "the box has no user %.300q", name)
	}
	home = "/home/" + name
	return wire.Moved{Path: home, Created: true}, makeUser(name, home)
}

// firstID is the first id that distributions give to people.
const firstID = 1000

// makeUser makes a user, with a group and a home of its own. The user is written down
// last: while one of the others fails there is none.
func makeUser(name, home string) error {
	id := freeID()
	if err := makeHome(home, id); err != nil {
		return fmt.Errorf("make the home of %s: %w", name, err)
	}
	if err := addLine(account.Groups, fmt.Sprintf("%s:x:%d:", name, id)); err != nil {
		return err
	}
	return addLine(account.Users, fmt.Sprintf("%s:x:%d:%d::%s:/bin/bash", name, id, id, home))
}

// freeID returns an id that no user and no group of the box has.
func freeID() int {
	users, groups := account.Names(account.Users), account.Names(account.Groups)
	id := uint32(firstID)
	for users[id] != "" || groups[id] != "" {
		id++
	}
	return int(id)
}

// makeHome makes a directory that belongs to a user. One that is there already is left
// as it is.
func makeHome(home string, id int) error {
	at, err := find(namesOf(path.Dir(home)))
	if err != nil {
		return err
	}
	defer at.close()
	dir, err := at.make()
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	err = unix.Mkdirat(dir, path.Base(home), 0o755)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return err
	}
	return unix.Fchownat(dir, path.Base(home), id, id, unix.AT_SYMLINK_NOFOLLOW)
}

// maxAccounts bounds the bytes of a file of accounts that a line is added to.
const maxAccounts = 1 << 20

// addLine adds a line to a file, which is replaced in one step.
func addLine(file, line string) error {
	names := namesOf(file)
	at, err := find(names[:len(names)-1])
	if err != nil {
		return err
	}
	defer at.close()
	dir, err := at.make()
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	text, err := readAccounts(dir, path.Base(file))
	if err != nil {
		return err
	}
	part, err := newPart(dir)
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	defer part.remove()
	if _, err := part.file.Write(slices.Concat(text, []byte(line+"\n"))); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return part.become(dir, path.Base(file), nil)
}

// readAccounts returns the text of a file, which ends with a whole line. A missing one
// is empty.
func readAccounts(dir int, name string) ([]byte, error) {
	fd, err := openAt(dir, name, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	file, err := reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxAccounts+1))
	if len(text) > maxAccounts {
		err = fault.New(fault.InvalidArgument, "%s has more than %d bytes", name, maxAccounts)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return text, err
}
