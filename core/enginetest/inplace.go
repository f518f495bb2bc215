package enginetest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/members"
)

// statsFiles tests what is told of files of each type.
func statsFiles(t *testing.T, s *suite) {
	ctx, box := s.context(t), s.box(t)
	dir := s.dir(t, box)
	s.shell(t, box, "cd "+dir+"; printf 12345 >file; chmod 4751 file; touch -d @1234567890 file; mkdir sub; ln -s file link; ln -s /nosuch nowhere; mkfifo fifo").wants(t, exited(0))
	got, err := box.StatFile(ctx, options.StatFile{Path: dir + "//file"})
	members.Equal(t, "a file", members.Of{
		"failure": {err, nil}, "name": {got.Name, "file"}, "path": {got.Path, dir + "/file"}, "type": {got.Type, "file"}, "size": {got.Size, 5},
		"mode": {got.Mode.String(), "4751"}, "uid": {got.UID, 0}, "gid": {got.GID, 0}, "owner": {got.Owner, "root"}, "group": {got.Group, "root"},
		"target": {got.Target, nil}, "modified": {got.ModifiedAt.Format("2006-01-02T15:04:05Z07:00"), "2009-02-13T23:31:30Z"},
	})
	for path, want := range map[string]api.FileType{
		"/sub": api.Directory, "/link": api.Symlink, "/nowhere": api.Symlink, "/fifo": api.FIFO, "/sub/": api.Directory, "/./sub": api.Directory,
	} {
		if got, err := box.StatFile(ctx, options.StatFile{Path: dir + path}); err != nil || got.Type != want {
			t.Errorf("%s is %v, %v", path, got.Type, err)
		}
	}
	link, err := box.StatFile(ctx, options.StatFile{Path: dir + "/link"})
	members.Equal(t, "a link", members.Of{"failure": {err, nil}, "target": {link.Target, "file"}, "name": {link.Name, "link"}})
	root, err := box.StatFile(ctx, options.StatFile{Path: "/"})
	members.Equal(t, "the root", members.Of{"failure": {err, nil}, "name": {root.Name, "/"}, "path": {root.Path, "/"}, "type": {root.Type, "directory"}})
	null, err := box.StatFile(ctx, options.StatFile{Path: "/dev/null"})
	members.Equal(t, "a device", members.Of{"failure": {err, nil}, "type": {null.Type, "char_device"}})
}

// listsFiles tests the order, the depth and the pages of lists.
func listsFiles(t *testing.T, s *suite) {
	box := s.box(t)
	dir := s.dir(t, box)
	s.shell(t, box, "cd "+dir+"; mkdir -p b/c/d e; touch a b/1 b/c/2 b/c/d/3 b.x 'new\nline'; ln -s b link; ln -s "+dir+" e/up").wants(t, exited(0))
	all := []string{"a", "b", "b/1", "b/c", "b/c/2", "b/c/d", "b/c/d/3", "b.x", "e", "e/up", "link", "new\nline"}
	deep := func(levels int) (names []string) {
		for _, name := range all {
			if strings.Count(name, "/") < levels {
				names = append(names, name)
			}
		}
		return names
	}
	for _, depth := range []int{0, 1, 2, 3, 64} {
		for _, size := range []int{0, 1, 2, 5, len(all)} {
			got := s.listed(t, box, options.ListFiles{Path: dir, Depth: depth, PageSize: size})
			if want := deep(max(depth, 1)); !slices.Equal(got, want) {
				t.Errorf("depth %d, pages of %d: %q, want %q", depth, size, got, want)
			}
		}
	}
	if got := s.listed(t, box, options.ListFiles{Path: dir + "/link", Depth: 1}); !slices.Equal(got, []string{"1", "c"}) {
		t.Errorf("by a link: %q", got)
	}
	if got := s.listed(t, box, options.ListFiles{Path: dir + "/b/c/d/"}); !slices.Equal(got, []string{"3"}) {
		t.Errorf("with a slash: %q", got)
	}
}

// listed returns the paths of all pages of a list, relative to its directory.
func (s *suite) listed(t *testing.T, box *core.Box, o options.ListFiles) (names []string) {
	t.Helper()
	for {
		page, err := box.ListFiles(s.context(t), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Files {
			names = append(names, strings.TrimPrefix(f.Path, strings.TrimSuffix(o.Path, "/")+"/"))
		}
		if page.NextPageToken == nil {
			return names
		}
		if o.PageSize > 0 && len(page.Files) != o.PageSize {
			t.Errorf("a page of %d has %d files and is not the last", o.PageSize, len(page.Files))
		}
		o.PageToken = *page.NextPageToken
	}
}

// knowsUsers tests the users that every box has, and one that none has.
func knowsUsers(t *testing.T, s *suite) {
	ctx, box := s.context(t), s.box(t)
	root, err := box.User(ctx, options.User{Name: "root"})
	members.Equal(t, "root", members.Of{"failure": {err, nil}, "name": {root.Name, "root"}, "home": {root.Home, "/root"}, "made": {root.Made, false}})
	for _, name := range []string{"nobody-of-this-name", "", "a:b", "-x", "..", strings.Repeat("x", 33)} {
		if _, err := box.User(ctx, options.User{Name: name}); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("user %.40q: %v", name, err)
		}
	}
}

// changesFiles tests directories that are made, and files that are moved and
// removed.
func changesFiles(t *testing.T, s *suite) {
	ctx, box := s.context(t), s.box(t)
	dir := s.dir(t, box)
	mode := 0o2770
	made, err := box.MakeDirectory(ctx, options.MakeDirectory{Path: dir + "/x/y/z", Mode: &mode})
	members.Equal(t, "a new directory", members.Of{
		"failure": {err, nil}, "created": {made.Created, true}, "mode": {made.Mode.String(), "2770"}, "path": {made.Path, dir + "/x/y/z"}, "type": {made.Type, "directory"},
	})
	again, err := box.MakeDirectory(ctx, options.MakeDirectory{Path: dir + "/x/y/z/"})
	members.Equal(t, "an old one", members.Of{"failure": {err, nil}, "created": {again.Created, false}, "mode": {again.Mode.String(), "2770"}})
	above, err := box.MakeDirectory(ctx, options.MakeDirectory{Path: dir + "/x"})
	members.Equal(t, "one on the way", members.Of{"failure": {err, nil}, "created": {above.Created, false}, "mode": {above.Mode.String(), "0755"}})

	s.shell(t, box, "cd "+dir+"; echo one >1; echo two >2; ln -s 1 link; mkdir full; touch full/f").wants(t, exited(0))
	for _, tt := range []struct{ from, to string }{{"/1", "/x/one"}, {"/x/one", "/2"}, {"/link", "/moved"}, {"/x/y", "/y"}, {"/full", "/y/z"}} {
		got, err := box.MoveFile(ctx, options.MoveFile{From: dir + tt.from, To: dir + tt.to})
		members.Equal(t, "moved to "+tt.to, members.Of{"failure": {err, nil}, "path": {got.Path, dir + tt.to}})
	}
	if got := s.listed(t, box, options.ListFiles{Path: dir, Depth: 9}); !slices.Equal(got, []string{"2", "moved", "x", "y", "y/z", "y/z/f"}) {
		t.Errorf("after the moves: %q", got)
	}
	if r := s.shell(t, box, "cat "+dir+"/2"); r.out != "one\n" {
		t.Errorf("what was replaced is %q", r.out)
	}
	for _, tt := range []struct {
		path      string
		recursive bool
		removed   int64
	}{{"/2", false, 1}, {"/moved", true, 1}, {"/x", false, 1}, {"/y", true, 3}} {
		got, err := box.RemoveFile(ctx, options.RemoveFile{Path: dir + tt.path, Recursive: tt.recursive})
		members.Equal(t, "removed "+tt.path, members.Of{"failure": {err, nil}, "path": {got.Path, dir + tt.path}, "removed": {got.Removed, tt.removed}})
	}
	if got := s.listed(t, box, options.ListFiles{Path: dir}); len(got) > 0 {
		t.Errorf("left %q", got)
	}
}

// operations are those on files, by their names: with an engine, a box and a path.
func operations(ctx context.Context, dir string) map[string]func(core.Engine, string, string) error {
	return map[string]func(core.Engine, string, string) error{
		"stat": func(e core.Engine, id, path string) error {
			_, err := e.StatFile(ctx, id, options.StatFile{Path: path})
			return err
		},
		"list": func(e core.Engine, id, path string) error {
			_, err := e.ListFiles(ctx, id, options.ListFiles{Path: path})
			return err
		},
		"mkdir": func(e core.Engine, id, path string) error {
			_, err := e.MakeDirectory(ctx, id, options.MakeDirectory{Path: path})
			return err
		},
		"move": func(e core.Engine, id, path string) error {
			_, err := e.MoveFile(ctx, id, options.MoveFile{From: path, To: dir + "/elsewhere"})
			return err
		},
		"move to": func(e core.Engine, id, path string) error {
			_, err := e.MoveFile(ctx, id, options.MoveFile{From: dir + "/empty", To: path})
			return err
		},
		"remove": func(e core.Engine, id, path string) error {
			_, err := e.RemoveFile(ctx, id, options.RemoveFile{Path: path})
			return err
		},
	}
}

// inPlaceRefused tests what no operation on files does.
func inPlaceRefused(t *testing.T, s *suite) {
	ctx, box, stopped := s.context(t), s.box(t), s.box(t)
	dir := s.dir(t, box)
	s.shell(t, box, "cd "+dir+"; echo x >file; mkdir -p full/sub empty; touch full/f; ln -s loop loop").wants(t, exited(0))
	others := map[string]fault.Kind{"box_aaaaaaaaaaaaaaaaaaaa": fault.BoxNotFound, "../x": fault.BoxNotFound}
	if s.stops(t, stopped) {
		others[stopped.ID()] = fault.InvalidState
	}
	const invalid, missing = fault.InvalidArgument, fault.FileNotFound
	does := operations(ctx, dir)
	for name, do := range does {
		for _, path := range []string{"", "relative", "/a\x00b", "/a\xffb", "/" + strings.Repeat("x/", 2050), "/tmp/../tmp", "/" + strings.Repeat("n", 256)} {
			if err := do(s.engine, box.ID(), path); !fault.Is(err, invalid) {
				t.Errorf("%s of %.30q: %v", name, path, err)
			}
		}
		for id, kind := range others {
			if err := do(s.engine, id, dir+"/file"); !fault.Is(err, kind) {
				t.Errorf("%s in box %s: %v, want %v", name, id, err, kind)
			}
		}
	}
	for _, tt := range []struct {
		do, path string
		kind     fault.Kind
	}{
		{"stat", "/nosuch", missing}, {"stat", "/file/below", missing}, {"stat", "/loop/x", invalid}, {"list", "/nosuch", missing}, {"list", "/file", invalid},
		{"mkdir", "/file", invalid}, {"mkdir", "/file/below", invalid}, {"move", "/nosuch", missing}, {"move to", "/no/such", missing},
		{"move to", "/full", invalid}, {"move to", "/file", invalid}, {"move to", "/empty/in", invalid}, {"remove", "/nosuch", missing}, {"remove", "/full", invalid},
	} {
		if err := does[tt.do](s.engine, box.ID(), dir+tt.path); !fault.Is(err, tt.kind) {
			t.Errorf("%s of %s: %v, want %v", tt.do, tt.path, err, tt.kind)
		}
	}
	if err := does["remove"](s.engine, box.ID(), "/"); !fault.Is(err, invalid) {
		t.Errorf("remove of the root: %v", err)
	}
	for _, token := range []string{"!", "Li4vYQ", "Lw", strings.Repeat("YS8", 65) + "YQ"} {
		if _, err := box.ListFiles(ctx, options.ListFiles{Path: dir, PageToken: token}); !fault.Is(err, invalid) {
			t.Errorf("the page %.10q: %v", token, err)
		}
	}
	if got := s.listed(t, box, options.ListFiles{Path: dir, Depth: 9}); !slices.Equal(got, []string{"empty", "file", "full", "full/f", "full/sub", "loop"}) {
		t.Errorf("left %q", got)
	}
}
