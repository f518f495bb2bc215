package attack_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/members"
	"sandbox/test/rootfs"
)

// page returns the first page of a list.
func page(t *testing.T, b *boxes.Box, o options.ListFiles) api.Files {
	t.Helper()
	got, err := b.Engine.ListFiles(t.Context(), b.ID, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// No operation goes through a magic link, and none is led out of the box by a
// link that the box has planted.
func TestInPlaceLinks(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, `cd /tmp; for to in self/root 1/root 1/cwd self/fd; do ln -s /proc/$to "$(echo $to | tr / -)"; done; ln -s /../../../../../../etc up; echo x >file`)
	for _, dir := range []string{"/tmp/self-root", "/tmp/1-root", "/tmp/1-cwd", "/proc/self/root", "/proc/1/root", "/proc/self/cwd"} {
		_, err := b.Engine.StatFile(t.Context(), b.ID, options.StatFile{Path: dir + "/etc/passwd"})
		wantRefused(t, "stat in "+dir, err)
		_, err = b.Engine.ListFiles(t.Context(), b.ID, options.ListFiles{Path: dir})
		wantRefused(t, "list of "+dir, err)
		_, err = b.Engine.MakeDirectory(t.Context(), b.ID, options.MakeDirectory{Path: dir + "/tmp/made"})
		wantRefused(t, "mkdir in "+dir, err)
		_, err = b.Engine.MoveFile(t.Context(), b.ID, options.MoveFile{From: "/tmp/file", To: dir + "/tmp/moved"})
		wantRefused(t, "move to "+dir, err)
		_, err = b.Engine.RemoveFile(t.Context(), b.ID, options.RemoveFile{Path: dir + "/tmp/file", Recursive: true})
		wantRefused(t, "remove in "+dir, err)
	}
	names := map[string]bool{}
	for _, f := range page(t, b, options.ListFiles{Path: "/tmp/up"}).Files {
		names[f.Name] = true
	}
	if !names["passwd"] || names["shadow-"] {
		t.Errorf("up and up is the box's own: %v", names)
	}
	if _, err := b.Engine.RemoveFile(t.Context(), b.ID, options.RemoveFile{Path: "/tmp/up", Recursive: true}); err != nil || b.Sh(t, "cat /etc/passwd /tmp/file") == "" {
		t.Errorf("a link with what it leads to was removed: %v", err)
	}
	b.Lives(t)
}

func wantRefused(t *testing.T, what string, err error) {
	t.Helper()
	if !fault.Is(err, fault.InvalidArgument) && !fault.Is(err, fault.FileNotFound) {
		t.Errorf("%s: %v", what, err)
	}
}

// Operations have the rights of their user and no more, and what they make is the
// user's.
func TestInPlaceUser(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	const user = "user"
	b.Sh(t, "mkdir -m 700 /private; echo x >/private/file; mkdir -m 1777 /tmp/open; echo root >/tmp/open/roots; mkdir -m 777 /tmp/all; echo old >/tmp/all/file; chmod 4666 /tmp/all/file")
	ctx := t.Context()
	denied := map[string]error{}
	_, denied["stat"] = b.Engine.StatFile(ctx, b.ID, options.StatFile{Path: "/private/file", User: user})
	_, denied["list"] = b.Engine.ListFiles(ctx, b.ID, options.ListFiles{Path: "/private", User: user})
	_, denied["mkdir"] = b.Engine.MakeDirectory(ctx, b.ID, options.MakeDirectory{Path: "/etc/made", User: user})
	_, denied["move"] = b.Engine.MoveFile(ctx, b.ID, options.MoveFile{From: "/tmp/open/roots", To: "/tmp/open/mine", User: user})
	_, denied["remove"] = b.Engine.RemoveFile(ctx, b.ID, options.RemoveFile{Path: "/tmp/open/roots", User: user})
	_, denied["remove all"] = b.Engine.RemoveFile(ctx, b.ID, options.RemoveFile{Path: "/private", Recursive: true, User: user})
	_, denied["upload"] = upload(t, b, core.Upload{Dest: "/etc/new", User: user}, strings.NewReader("x"))
	_, denied["upload over another's"] = upload(t, b, core.Upload{Dest: "/tmp/open/roots", User: user}, strings.NewReader("x"))
	_, denied["download"] = b.Engine.Download(ctx, b.ID, options.Download{Path: "/private/file", User: user})
	for name, err := range denied {
		if !fault.Is(err, fault.PermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	made, err := b.Engine.MakeDirectory(ctx, b.ID, options.MakeDirectory{Path: "/tmp/open/a/b", User: user})
	members.Equal(t, "a directory of a user's", members.Of{"failure": {err, nil}, "uid": {made.UID, 1000}, "gid": {made.GID, 1000}, "owner": {made.Owner, "user"}})
	for _, dest := range []string{"/tmp/open/a/b/c/file", "/tmp/all/file"} {
		if _, err := upload(t, b, core.Upload{Dest: dest, User: "1000:7"}, strings.NewReader("new")); err != nil {
			t.Errorf("upload to %s: %v", dest, err)
		}
	}
	if got := b.Sh(t, "stat -c '%u %g %a %n' /tmp/open/a /tmp/open/a/b/c /tmp/open/a/b/c/file /tmp/all/file"); got != "1000 1000 755 /tmp/open/a\n1000 7 755 /tmp/open/a/b/c\n1000 7 644 /tmp/open/a/b/c/file\n1000 7 666 /tmp/all/file\n" {
		t.Errorf("what a user made: %s", got)
	}
	files := page(t, b, options.ListFiles{Path: "/", Depth: 2, User: user}).Files
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.Path] = f.Unreadable
	}
	if !seen["/private"] || seen["/tmp"] {
		t.Errorf("unreadable are: %v", seen)
	}
	for _, who := range []string{"nobody-of-that-name", "user:nogroup-of-that-name", "99999999", "a\x00"} {
		if _, err := b.Engine.StatFile(ctx, b.ID, options.StatFile{Path: "/", User: who}); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("as %q: %v", who, err)
		}
	}
}

// Names are bytes. Where they are not UTF-8, the exact ones stand beside.
func TestInPlaceNames(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, `mkdir /tmp/d; cd /tmp/d; touch "$(printf 'a\nb')" "$(printf 'b\377\376')" "$(printf '\303\251')"; ln -s "$(printf '\377')" l; mkdir "$(printf 'z\200')"; touch "$(printf 'z\200/in')"`)
	files := page(t, b, options.ListFiles{Path: "/tmp/d", Depth: 2}).Files
	exact := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	want := []struct{ name, path, exact, target string }{
		{"a\nb", "/tmp/d/a\nb", "", ""}, {"b\ufffd\ufffd", "/tmp/d/b\ufffd\ufffd", exact("/tmp/d/b\xff\xfe"), ""}, {"l", "/tmp/d/l", "", exact("\xff")},
		{"z\ufffd", "/tmp/d/z\ufffd", exact("/tmp/d/z\x80"), ""}, {"in", "/tmp/d/z\ufffd/in", exact("/tmp/d/z\x80/in"), ""}, {"é", "/tmp/d/é", "", ""},
	}
	if len(files) != len(want) {
		t.Fatalf("got %+v", files)
	}
	for i, w := range want {
		members.Equal(t, w.path, members.Of{
			"name": {files[i].Name, w.name}, "path": {files[i].Path, w.path}, "exact": {files[i].PathBase64, w.exact}, "target": {files[i].TargetBase64, w.target},
		})
	}
	next := page(t, b, options.ListFiles{Path: "/tmp/d", Depth: 2, PageSize: 4})
	rest := page(t, b, options.ListFiles{Path: "/tmp/d", Depth: 2, PageToken: *next.NextPageToken}).Files
	if len(rest) != 2 || rest[0].Name != "in" {
		t.Errorf("behind a name that is not UTF-8: %+v", rest)
	}
	if got, err := b.Engine.RemoveFile(t.Context(), b.ID, options.RemoveFile{Path: "/tmp/d", Recursive: true}); err != nil || got.Removed != 7 {
		t.Errorf("removed %+v, %v", got, err)
	}
}

// A directory of 200,000 files is listed and removed in a box of little memory.
func TestInPlaceHuge(t *testing.T) {
	t.Parallel()
	const all, links = 200_000, 50_000
	// The host makes the files: what the kernel keeps of them in memory would count as the
	// box's, and is more than it has. They are links of a few, as the removal of that many
	// inodes would keep ext4 from others' new files for half a minute.
	shared := t.TempDir()
	if err := os.Mkdir(filepath.Join(shared, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		first, name := filepath.Join(shared, strconv.Itoa(i/links)), filepath.Join(shared, "d", strconv.Itoa(100_000+i))
		if i%links == 0 {
			if err := os.WriteFile(first, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(first, name); err != nil {
			t.Fatal(err)
		}
	}
	b := boxes.New(t, func(o *options.Box) { o.Volumes = []options.Volume{{HostPath: shared, GuestPath: "/v"}} })
	o, last, n := options.ListFiles{Path: "/v/d"}, "", 0
	for pages := 0; ; pages++ {
		got := page(t, b, o)
		for _, f := range got.Files {
			if f.Name <= last {
				t.Fatalf("%s behind %s", f.Name, last)
			}
			last = f.Name
		}
		n += len(got.Files)
		if got.NextPageToken == nil {
			break
		}
		if pages > all/options.MaxFilePage {
			t.Fatal("there is no last page")
		}
		o.PageToken = *got.NextPageToken
	}
	if n != all {
		t.Errorf("listed %d, the last of them %s", n, last)
	}
	if got, err := b.Engine.RemoveFile(t.Context(), b.ID, options.RemoveFile{Path: "/v/d", Recursive: true}); err != nil || got.Removed != all+1 {
		t.Errorf("removed %+v, %v", got, err)
	}
	b.Lives(t)
}

// A box that puts links in the places of directories while these are listed or
// removed loses nothing but what it was asked for.
func TestInPlaceSwapped(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "mkdir -p /kept/below; echo kept >/kept/below/file; ln -s /kept /link; mkdir /tmp/d")
	swapping, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: []string{"sh", "-c", `cd /tmp/d
		while :; do mkdir -p s/below; mv s t; cp -P /link s; rm -rf t s; done`}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = swapping.Release() })
	for range 300 {
		for _, f := range page(t, b, options.ListFiles{Path: "/tmp/d", Depth: 5}).Files {
			if strings.HasSuffix(f.Path, "below/file") {
				t.Fatalf("a list went through a link: %+v", f)
			}
		}
		_, err := b.Engine.RemoveFile(t.Context(), b.ID, options.RemoveFile{Path: "/tmp/d/s", Recursive: true})
		if err != nil && !fault.Is(err, fault.FileNotFound) && !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("remove: %v", err)
		}
	}
	if got := b.Sh(t, "cat /kept/below/file"); got != "kept\n" {
		t.Errorf("what a link leads to was removed: %q", got)
	}
	b.Lives(t)
}

// What is mounted below a directory stays, as it may be a volume of the user's.
func TestInPlaceVolume(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "precious"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := boxes.New(t, func(o *options.Box) { o.Volumes = []options.Volume{{HostPath: host, GuestPath: "/work/volume"}} })
	for _, path := range []string{"/work/volume", "/work"} {
		if _, err := b.Engine.RemoveFile(t.Context(), b.ID, options.RemoveFile{Path: path, Recursive: true}); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("remove of %s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(host, "precious")); err != nil {
		t.Error(err)
	}
	b.Sh(t, "echo x >/file")
	if _, err := b.Engine.MoveFile(t.Context(), b.ID, options.MoveFile{From: "/file", To: "/work/volume/file"}); !fault.Is(err, fault.InvalidArgument) || !strings.Contains(err.Error(), "copy it") {
		t.Errorf("move to another file system: %v", err)
	}
	if _, err := b.Engine.RemoveFile(t.Context(), b.ID, options.RemoveFile{Path: "/work/volume/precious"}); err != nil {
		t.Errorf("remove in a volume: %v", err)
	}
}

// Accounts that are no file, or that never end, are none.
func TestInPlaceAccounts(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a FIFO": "rm /etc/passwd; mkfifo /etc/passwd", "a device": "rm /etc/passwd; ln -s /dev/zero /etc/passwd", "none": "rm /etc/passwd",
		"init's own": "rm /etc/passwd; ln -s /proc/self/fd/3 /etc/passwd", "a name too long": "echo \"$(head -c 100000 /dev/zero | tr '\\0' x):x:0:0::/:\" >/etc/passwd",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := boxes.On(t, rootfs.Busybox(t))
			b.Sh(t, script)
			got, err := b.Engine.StatFile(t.Context(), b.ID, options.StatFile{Path: "/tmp", User: "1000"})
			members.Equal(t, "a file", members.Of{"failure": {err, nil}, "uid": {got.UID, 0}, "owner": {got.Owner, nil}, "group": {got.Group, "root"}})
		})
	}
}
