package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/test/members"
)

// entries are files of each kind, and of what names can hold.
var entries = []wire.Entry{
	{Mode: unix.S_IFDIR | 0o755},
	{Path: "a/b", Mode: unix.S_IFREG | 0o4644, UID: 1000, GID: 65535, Size: 1 << 40, Modified: 1234567890, Nanosecond: 999_999_999, Owner: "user", Group: "staff"},
	{Path: "l\xff", Target: "\xfe", Mode: unix.S_IFLNK | 0o777, Modified: -1, Unreadable: true},
	{Path: strings.Repeat("n", 255), Mode: unix.S_IFSOCK, Target: strings.Repeat("t", 4095)},
}

// What was written is read, record by record.
func TestEntry(t *testing.T) {
	t.Parallel()
	var b []byte
	for _, e := range entries {
		b = wire.AppendRecord(b, e.Append(nil))
		b = wire.AppendRecord(b, nil)
	}
	r, buf := bufio.NewReader(bytes.NewReader(b)), []byte(nil)
	for _, want := range entries {
		var err error
		if buf, err = wire.ReadRecord(r, buf); err != nil {
			t.Fatal(err)
		}
		if got, err := wire.ReadEntry(buf); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if buf, err = wire.ReadRecord(r, buf); err != nil || len(buf) > 0 {
			t.Fatalf("an empty record: %q, %v", buf, err)
		}
	}
	if _, err := wire.ReadRecord(r, buf); !errors.Is(err, io.EOF) || errors.Is(err, wire.ErrProtocol) {
		t.Errorf("behind the last record: %v", err)
	}
}

// What no file can have is refused.
func TestEntryRefused(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]wire.Entry{
		"no type": {Mode: 0o644}, "up": {Path: "../a", Mode: unix.S_IFREG}, "absolute": {Path: "/a", Mode: unix.S_IFREG}, "a NUL": {Path: "a\x00", Mode: unix.S_IFREG},
		"two slashes": {Path: "a//b", Mode: unix.S_IFREG}, "less than nothing": {Mode: unix.S_IFREG, Size: -1}, "a long second": {Mode: unix.S_IFREG, Nanosecond: 1e9},
	} {
		if got, err := wire.ReadEntry(e.Append(nil)); !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	whole := entries[1].Append(nil)
	for i := range whole {
		if got, err := wire.ReadEntry(whole[:i]); !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("%d bytes: %+v, %v", i, got, err)
		}
	}
	if _, err := wire.ReadEntry(append(whole, 0)); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("a byte more: %v", err)
	}
	for name, b := range map[string]string{"too long": "\xff\xff\x7f", "endless": strings.Repeat("\xff", 20), "cut off": "\x05abc", "half a length": "\xff"} {
		if _, err := wire.ReadRecord(bufio.NewReader(strings.NewReader(b)), nil); !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzEntry reads what a child in a hostile box may send.
func FuzzEntry(f *testing.F) {
	for _, e := range entries {
		f.Add(wire.AppendRecord(nil, e.Append(nil)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, buf := bufio.NewReader(bytes.NewReader(b)), []byte(nil)
		for {
			var err error
			if buf, err = wire.ReadRecord(r, buf); err != nil {
				return
			}
			e, err := wire.ReadEntry(buf)
			if err != nil {
				continue
			}
			if again, err := wire.ReadEntry(e.Append(nil)); err != nil || again != e {
				t.Fatalf("%+v was read as %+v, %v", e, again, err)
			}
			if file := e.File("/d"); !strings.HasPrefix(file.Path, "/d") || file.ModifiedAt.Year() > 9999 {
				t.Fatalf("%+v became %+v", e, file)
			}
		}
	})
}

// A directory's files come right behind it, by the bytes of their names.
func TestComparePaths(t *testing.T) {
	t.Parallel()
	want := []string{"", "a", "a/b", "a/b/c", "a/b.x", "a/c", "a!", "a.x", "ab", "b\x01", "b/", "\xff"}
	want = slices.DeleteFunc(want, func(s string) bool { return s == "b/" })
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, wire.ComparePaths)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	link := entries[2].File("/")
	members.Equal(t, "a link", members.Of{
		"name": {link.Name, "l\ufffd"}, "path": {link.Path, "/l\ufffd"}, "exact": {link.PathBase64, "L2z/"}, "target": {link.Target, "\ufffd"},
		"exact target": {link.TargetBase64, "/g=="}, "owner": {link.Owner, nil}, "modified": {link.ModifiedAt.Unix(), -1},
	})
	root := entries[0].File("/")
	members.Equal(t, "the root", members.Of{"name": {root.Name, "/"}, "path": {root.Path, "/"}, "mode": {root.Mode.String(), "0755"}})
}

// events are one of each kind, and of what names can hold.
var events = []wire.Event{
	{Type: api.FileCreated, Path: "a/b", Directory: true}, {Type: api.FileModified, Path: "a\xff"}, {Type: api.FileRemoved, Path: "a"}, {Type: api.FileAttributes, Path: "a"},
	{Type: api.FileRenamed, Path: "a", From: "b\xfe"}, {Type: api.Overflow}, {Type: api.EndOfWatch, Reason: api.WatchFailed, Message: "why"},
}

func TestEvent(t *testing.T) {
	t.Parallel()
	for _, e := range events {
		if got, err := wire.ReadEvent(e.Append(nil)); err != nil || got != e {
			t.Errorf("got %+v, %v, want %+v", got, err, e)
		}
	}
	renamed := events[4].Document("/w/")
	members.Equal(t, "a rename", members.Of{
		"path": {renamed.Path, "/w/a"}, "exact": {renamed.PathBase64, ""}, "from": {renamed.From, "/w/b\ufffd"}, "exact from": {renamed.FromBase64, "L3cvYv4="},
	})
	for name, e := range map[string]wire.Event{
		"no type": {Path: "a"}, "no path": {Type: api.FileCreated}, "up": {Type: api.FileCreated, Path: "../a"}, "from up": {Type: api.FileRenamed, Path: "a", From: ".."},
		"from nowhere": {Type: api.FileRenamed, Path: "a"}, "no reason": {Type: api.EndOfWatch}, "another reason": {Type: api.EndOfWatch, Reason: "x"},
		"an overflow of a file": {Type: api.Overflow, Path: "a"}, "another type": {Type: "x", Path: "a"}, "a reason": {Type: api.FileCreated, Path: "a", Reason: api.WatchRemoved},
	} {
		if got, err := wire.ReadEvent(e.Append(nil)); !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// FuzzEvent reads what a child in a hostile box may send of a watch.
func FuzzEvent(f *testing.F) {
	for _, e := range events {
		f.Add(e.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := wire.ReadEvent(b)
		if err != nil {
			return
		}
		if again, err := wire.ReadEvent(e.Append(nil)); err != nil || again != e {
			t.Fatalf("%+v was read as %+v, %v", e, again, err)
		}
		if doc := e.Document("/w"); doc.Path != "" && !strings.HasPrefix(doc.Path, "/w/") {
			t.Fatalf("%+v became %+v", e, doc)
		}
	})
}

// TestListed wants the documents of a list to be those of its entries, although they
// share names.
func TestListed(t *testing.T) {
	t.Parallel()
	l := wire.NewListed("/d/")
	for i, e := range []wire.Entry{
		{Path: "a", Mode: unix.S_IFREG | 0o644, Owner: "root", Group: "root"},
		{Path: "b", Mode: unix.S_IFREG | 0o644, Owner: "root", Group: "users"},
		{Path: "c", Mode: unix.S_IFREG | 0o644, Group: "users"},
		{Path: "d", Mode: unix.S_IFLNK | 0o777, Target: "users", Owner: "root", Group: "\xff"},
		{Path: "e", Mode: unix.S_IFREG | 0o7, Owner: "root"},
	} {
		got, file, err := l.Next(e.Append(nil))
		if err != nil || got != e || !reflect.DeepEqual(file, e.File("/d")) {
			t.Errorf("%d: %+v, %+v, %v", i, got, file, err)
		}
	}
	if _, _, err := l.Next([]byte{200}); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("a record that is none: %v", err)
	}
}
