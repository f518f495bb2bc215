package inits

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// StatFile looks at a file; see [core.Files].
func (c *Client) StatFile(ctx context.Context, id string, o options.StatFile) (api.File, error) {
	if err := o.Check(); err != nil {
		return api.File{}, err
	}
	file, _, err := c.operateOnOne(ctx, id, o.User, wire.Move{Operation: wire.Stat, Path: o.Path}, o.Path)
	return file, err
}

// MakeDirectory makes a directory; see [core.Files].
func (c *Client) MakeDirectory(ctx context.Context, id string, o options.MakeDirectory) (api.MadeDirectory, error) {
	if err := o.Check(); err != nil {
		return api.MadeDirectory{}, err
	}
	file, done, err := c.operateOnOne(ctx, id, o.User, wire.Move{Operation: wire.MakeDirectory, Path: o.Path, Mode: o.Mode, Owner: o.Owner}, o.Path)
	return api.MadeDirectory{File: file, Created: done.Created}, err
}

// MoveFile gives a file another path; see [core.Files].
func (c *Client) MoveFile(ctx context.Context, id string, o options.MoveFile) (api.File, error) {
	if err := o.Check(); err != nil {
		return api.File{}, err
	}
	file, _, err := c.operateOnOne(ctx, id, o.User, wire.Move{Operation: wire.Rename, Path: o.From, To: o.To}, o.To)
	return file, err
}

// RemoveFile removes a file or a directory; see [core.Files].
func (c *Client) RemoveFile(ctx context.Context, id string, o options.RemoveFile) (api.RemovedFiles, error) {
	if err := o.Check(); err != nil {
		return api.RemovedFiles{}, err
	}
	done, err := c.operate(ctx, id, o.User, wire.Move{Operation: wire.Remove, Path: o.Path, Recursive: o.Recursive}, func([]byte) error { return nil })
	return api.RemovedFiles{Path: path.Clean(o.Path), Removed: done.Removed}, err
}

// User looks for a user, and makes one; see [core.Files].
func (c *Client) User(ctx context.Context, id string, o options.User) (core.User, error) {
	if err := o.Check(); err != nil {
		return core.User{}, err
	}
	done, err := c.operate(ctx, id, "", wire.Move{Operation: wire.User, Name: o.Name, Make: o.Make}, func([]byte) error { return wire.ErrProtocol })
	if err == nil && (!path.IsAbs(done.Path) || len(done.Path) > options.MaxPath) {
		err = fault.Wrap(fault.Engine, wire.ErrProtocol, "box %s told no home of user %s", id, o.Name)
	}
	return core.User{Name: o.Name, Home: done.Path, Made: done.Created}, err
}

// ListFiles returns a page of a list; see [core.Files].
func (c *Client) ListFiles(ctx context.Context, id string, o options.ListFiles) (api.Files, error) {
	if err := o.Check(); err != nil {
		return api.Files{}, err
	}
	last, err := o.After()
	if err != nil {
		return api.Files{}, err
	}
	limit := cmp.Or(o.PageSize, options.MaxFilePage)
	page, listed := api.Files{Files: []api.File{}}, wire.NewListed(o.Path)
	done, err := c.operate(ctx, id, o.User, wire.Move{
		Operation: wire.List, Path: o.Path, Depth: max(o.Depth, 1), Limit: limit, After: []byte(last),
	}, func(record []byte) error {
		e, file, err := listed.Next(record)
		if err != nil {
			return err
		}
		// In order and no more than asked for, so that pages come to an end.
		if len(page.Files) == limit || wire.ComparePaths(last, e.Path) >= 0 {
			return wire.ErrProtocol
		}
		last = e.Path
		if n := len(page.Files); n == cap(page.Files) { // append would copy large pages often
			page.Files = slices.Grow(page.Files, min(3*n+64, limit-n))
		}
		page.Files = append(page.Files, file)
		return nil
	})
	if err == nil && done.More && len(page.Files) == 0 {
		err = fault.Wrap(fault.Engine, wire.ErrProtocol, "box %s told of a page without files", id)
	}
	if err == nil && done.More {
		token := options.FilePageToken(last)
		page.NextPageToken = &token
	}
	return page, err
}

// operateOnOne does what is answered with one file, whose path is known.
func (c *Client) operateOnOne(ctx context.Context, id, user string, m wire.Move, at string) (api.File, wire.Moved, error) {
	var files []api.File
	done, err := c.operate(ctx, id, user, m, func(record []byte) error {
		e, err := wire.ReadEntry(record)
		if err != nil || e.Path != "" || len(files) > 0 {
			return errors.Join(wire.ErrProtocol, err)
		}
		files = append(files, e.File(at))
		return nil
	})
	if err != nil || len(files) == 0 {
		return api.File{}, done, cmp.Or(err, fault.Wrap(fault.Engine, wire.ErrProtocol, "box %s told nothing of %.300q", id, at))
	}
	return files[0], done, nil
}

// maxReply bounds the records of one operation in bytes, those without content
// not counted: what a child sends of a page of a list is less.
const maxReply = 16 << 20

// operate has a child work on files, calls take with each record that has content,
// and returns the child's answer. It fails when nothing comes for answerTimeout.
func (c *Client) operate(ctx context.Context, id, user string, m wire.Move, take func(record []byte) error) (wire.Moved, error) {
	t, err := c.transfer(ctx, id, wire.Files{User: user}, m)
	if err != nil {
		return wire.Moved{}, err
	}
	defer t.close()
	r, buf, left := bufio.NewReaderSize(prompt{t.patient(t.data)}, transferBuffer), []byte(nil), maxReply
	for {
		buf, err = wire.ReadRecord(r, buf)
		if errors.Is(err, io.EOF) && !errors.Is(err, wire.ErrProtocol) {
			break
		}
		if err == nil && len(buf) > 0 {
			if left -= len(buf); left < 0 {
				err = wire.ErrProtocol
			} else {
				err = take(buf)
			}
		}
		if err != nil {
			return wire.Moved{}, t.broken(err)
		}
	}
	done, err := t.answer()
	if err == nil && !done.Done {
		err = t.broken(wire.ErrProtocol)
	}
	return done, err
}

// prompt reads what a child sends, as long as it sends something within
// answerTimeout.
type prompt struct{ *patience }

// Read implements [io.Reader].
func (p prompt) Read(b []byte) (int, error) {
	p.since = time.Now()
	return p.patience.Read(b)
}
