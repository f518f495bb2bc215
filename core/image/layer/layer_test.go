package layer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// TestMain lets the test program act as the child that Unpack starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "unpack" {
		os.Exit(layer.Child())
	}
	if len(os.Args) == 3 && os.Args[1] == "unpack" { // within so many seconds of CPU time
		bound, err := strconv.ParseUint(os.Args[2], 10, 64)
		if err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: bound, Max: bound})); err != nil {
			os.Exit(3)
		}
		os.Exit(layer.Child())
	}
	os.Exit(m.Run())
}

var then = time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)

// pack returns a tar of the entries. Contents of files come from
// PAXRecords["content"].
func pack(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := h.PAXRecords["content"]
		delete(h.PAXRecords, "content")
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if h.ModTime.IsZero() {
			h.ModTime = then
		}
		h.Size, h.Format = int64(len(content)), tar.FormatPAX
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"content": content}}
}
func dir(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
func symlink(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
}
func hardlink(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: to}
}
func attr(h tar.Header, name, value string) tar.Header {
	if h.PAXRecords == nil {
		h.PAXRecords = map[string]string{}
	}
	h.PAXRecords["SCHILY.xattr."+name] = value
	return h
}

// unpacked extracts a tar in a child as root, or fails the test.
func unpacked(t *testing.T, data []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layer")
	if err := unpack(t.Context(), data, dir); err != nil {
		t.Fatal("needs root: ", err)
	}
	return dir
}

func unpack(ctx context.Context, data []byte, dir string) error {
	return layer.Unpack(ctx, []string{"/proc/self/exe", "unpack"}, bytes.NewReader(data), dir)
}

func stat(t *testing.T, dir, name string) *unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil {
		t.Fatal(name, ": ", err)
	}
	return &st
}

func xattr(dir, name, attr string) string {
	var buf [256]byte
	n, err := unix.Lgetxattr(filepath.Join(dir, name), attr, buf[:])
	if err != nil {
		return err.Error()
	}
	return string(buf[:n])
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestKeepsWhatATarSays(t *testing.T) {
	t.Parallel()
	const capability = "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // cap_net_bind_service+ep
	root := dir("./")
	root.Mode = 0o711
	owned := attr(attr(file("d/owned", "text"), "user.note", "yes"), "security.capability", capability)
	owned.Uid, owned.Gid, owned.Mode = 65535, 1000, 0o6751
	fifo := tar.Header{Name: "d/fifo", Typeflag: tar.TypeFifo, Mode: 0o622, Uid: 7}
	link := symlink("d/link", "/etc/passwd")
	link.Uid = 33
	sticky := dir("d/sticky")
	sticky.Mode, sticky.Uid = 0o3777, 5
	dir := unpacked(t, pack(t, root, dir("d"), owned, fifo, link, sticky, file("d/sticky/f", ""), hardlink("d/again", "d/owned"),
		hardlink("d/link2", "d/link"), file("left/out/f", "x"), file("a-"+strings.Repeat("n", 250)+"/x", "long")))

	for _, c := range []struct {
		name     string
		mode     uint32
		uid, gid uint32
	}{
		{".", unix.S_IFDIR | 0o711, 0, 0},
		{"d", unix.S_IFDIR | 0o755, 0, 0},
		{"d/owned", unix.S_IFREG | 0o6751, 65535, 1000},
		{"d/fifo", unix.S_IFIFO | 0o622, 7, 0},
		{"d/link", unix.S_IFLNK | 0o777, 33, 0},
		{"d/sticky", unix.S_IFDIR | 0o3777, 5, 0},
		{"left", unix.S_IFDIR | 0o755, 0, 0},
	} {
		st := stat(t, dir, c.name)
		if st.Mode != c.mode || st.Uid != c.uid || st.Gid != c.gid {
			t.Errorf("%s: mode %o owner %d:%d, want %o %d:%d", c.name, st.Mode, st.Uid, st.Gid, c.mode, c.uid, c.gid)
		}
		if c.name != "left" && (st.Mtim.Sec != then.Unix() || st.Mtim.Nsec != 789) {
			t.Errorf("%s: mtime %v, want %v", c.name, st.Mtim, then)
		}
	}
	if got := read(t, dir, "d/owned"); got != "text" {
		t.Errorf("content %q", got)
	}
	if a, b := stat(t, dir, "d/owned"), stat(t, dir, "d/again"); a.Ino != b.Ino {
		t.Error("hard link is another file")
	}
	if a, b := stat(t, dir, "d/link"), stat(t, dir, "d/link2"); a.Ino != b.Ino {
		t.Error("hard link of a symlink is another file")
	}
	if got, _ := os.Readlink(filepath.Join(dir, "d/link")); got != "/etc/passwd" {
		t.Errorf("link to %q", got)
	}
	if got := xattr(dir, "d/owned", "user.note"); got != "yes" {
		t.Errorf("user.note = %q", got)
	}
	if got := xattr(dir, "d/owned", "security.capability"); got != capability {
		t.Errorf("capability = %q", got)
	}
}

func TestOddButHarmless(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tar  []byte
		want map[string]string // file: content
	}{
		"link within":         {pack(t, dir("usr/lib"), symlink("lib", "usr/lib"), file("lib/f", "x")), map[string]string{"usr/lib/f": "x"}},
		"last of two":         {pack(t, file("f", "longer"), file("f", "2")), map[string]string{"f": "2"}},
		"file for link":       {pack(t, file("g", "g"), symlink("f", "g"), file("f", "f")), map[string]string{"f": "f", "g": "g"}},
		"directory for link":  {pack(t, dir("g"), symlink("f", "g"), dir("f"), file("f/x", "x")), map[string]string{"f/x": "x"}},
		"directory twice":     {pack(t, dir("f"), file("f/x", "x"), dir("f")), map[string]string{"f/x": "x"}},
		"directory anew":      {pack(t, dir("f"), file("f", "file"), dir("f"), file("f/x", "x")), map[string]string{"f/x": "x"}},
		"ornaments":           {pack(t, file("./a//./b", "x")), map[string]string{"a/b": "x"}},
		"devices of dev":      {pack(t, tar.Header{Name: "./dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, file("f", "x")), map[string]string{"f": "x"}},
		"nothing":             {pack(t), nil},
		"garbage behind":      {append(pack(t, file("f", "x")), bytes.Repeat([]byte("garbage"), 1000)...), map[string]string{"f": "x"}},
		"a name in PAX":       {pack(t, file(strings.Repeat("d/", 500)+"f", "x")), map[string]string{strings.Repeat("d/", 500) + "f": "x"}},
		"aufs left-overs":     {pack(t, dir(".wh..wh.plnk"), file("f", "x")), map[string]string{"f": "x"}},
		"attributes not kept": {pack(t, attr(attr(file("f", "x"), "user.overlay.redirect", "/etc"), "trusted.overlay.opaque", "y")), map[string]string{"f": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := unpacked(t, c.tar)
			for name, want := range c.want {
				if got := read(t, dir, name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			if attr := xattr(dir, "f", "user.overlay.redirect"); attr == "/etc" {
				t.Error("an attribute of overlayfs came in")
			}
			if _, err := os.Lstat(filepath.Join(dir, ".wh..wh.plnk")); err == nil {
				t.Error("an AUFS left-over came in")
			}
		})
	}
}

func TestHostileTars(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(outside, []byte("safe"), 0o600); err != nil {
		t.Fatal(err)
	}
	device := tar.Header{Name: "d/sda", Typeflag: tar.TypeBlock, Devmajor: 8}
	whiteoutDevice := tar.Header{Name: "x", Typeflag: tar.TypeChar}
	uid := file("f", "")
	uid.Uid = 65536
	negative := file("f", "")
	negative.Gid = -1
	big := file("f", strings.Repeat("x", 2<<20))
	big.ModTime = time.Unix(1, 0) // such a time needs no PAX header
	up := strings.Repeat("../", 30)
	for name, c := range map[string]struct {
		tar  []byte
		want string
	}{
		"dot dot":                 {pack(t, file(up[:3]+"f", "x")), "with .. in it"},
		"dot dot within":          {pack(t, file("a/../../f", "x")), "with .. in it"},
		"absolute":                {pack(t, file(outside, "x")), "absolute"},
		"through absolute link":   {pack(t, symlink("l", filepath.Dir(outside)), file("l/canary", "x")), "out of the layer"},
		"through link out":        {pack(t, symlink("l", up+"tmp"), file("l/f", "x")), "out of the layer"},
		"through chain of links":  {pack(t, symlink("a", "b"), symlink("b", up), file("a/f", "x")), "out of the layer"},
		"directory through link":  {pack(t, symlink("l", "/"), dir("l/made")), "out of the layer"},
		"loop of links":           {pack(t, symlink("a", "b"), symlink("b", "a"), file("a/f", "x")), "too many levels"},
		"hard link out":           {pack(t, hardlink("f", up+"etc/passwd")), "with .. in it"},
		"hard link to absolute":   {pack(t, hardlink("f", outside)), "absolute"},
		"hard link through link":  {pack(t, symlink("l", filepath.Dir(outside)), hardlink("f", "l/canary")), "out of the layer"},
		"hard link to directory":  {pack(t, dir("d"), hardlink("f", "d")), "not permitted"},
		"hard link to nothing":    {pack(t, hardlink("f", "missing")), "no such file"},
		"hard link to itself":     {pack(t, file("f", ""), hardlink("f", "./f")), "to itself"},
		"whiteout through link":   {pack(t, symlink("l", "/"), file("l/.wh.etc", "")), "out of the layer"},
		"whiteout of nothing":     {pack(t, file("a/.wh.", "")), "whiteout that names no file"},
		"whiteout of dot dot":     {pack(t, file("a/.wh...", "")), "whiteout that names no file"},
		"opaque link":             {pack(t, symlink("l", "/"), file("l/.wh..wh..opq", "")), "out of the layer"},
		"block device":            {pack(t, device), "a device"},
		"overlay whiteout":        {pack(t, whiteoutDevice), "a device"},
		"directory into file":     {pack(t, file("a", ""), file("a/b", "")), "not a directory"},
		"file for full directory": {pack(t, file("a/b", ""), file("a", "")), "directory that has content"},
		"root is a link":          {pack(t, symlink(".", "/")), "root is not a directory"},
		"uid out of range":        {pack(t, uid), "owner 65536:0"},
		"negative gid":            {pack(t, negative), "owner 0:-1"},
		"name of 5000":            {pack(t, file(strings.Repeat("nnn/", 1249)+"nnnn", "")), "name of 5000 bytes"},
		"part of 300":             {pack(t, file(strings.Repeat("n", 300), "")), "too long"},
		"target of 5000":          {pack(t, symlink("l", strings.Repeat("n", 5000))), "name of 5000 bytes"},
		"truncated header":        {pack(t, file("f", "x"))[:1100], "damaged"},
		"truncated content":       {pack(t, file("f", strings.Repeat("x", 9000)))[:5000], "damaged"},
		"nothing at all":          {nil, "end mark"},
		"cut between entries":     {bytes.TrimRight(pack(t, file("f", strings.Repeat("x", 512))), "\x00"), "end mark"},
		"garbage":                 {bytes.Repeat([]byte("garbage"), 1000), "damaged"},
		"negative size":           {size(pack(t, file("f", "x")), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "damaged"},
		"size without content":    {size(pack(t, file("f", "x")), "77777777777\x00"), "damaged"},
		"giant size":              {size(pack(t, file("f", "x")), "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff"), "too much"},
		"huge PAX header":         {patch(pack(t, big), 0, 156, "x"), "damaged"},
		"attribute past limit":    {pack(t, attr(file("f", ""), "user.big", strings.Repeat("x", 100<<10))), "can't be made"},
		"capability that is none": {pack(t, attr(file("f", ""), "security.capability", "none")), "can't be made"},
		"unknown type":            {pack(t, tar.Header{Name: "f", Typeflag: 'Z'}), "unknown type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "layer")
			err := unpack(t.Context(), c.tar, dir)
			if !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want image_error with %q", err, c.want)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something is left: %v", err)
			}
			if got := read(t, "/", outside); got != "safe" {
				t.Error("wrote outside")
			}
		})
	}
}

// Ever deeper names cost no more than their length: once a tar of 2 MB took a minute.
func TestDeepNames(t *testing.T) {
	t.Parallel()
	var all []tar.Header
	for depth := range 1000 {
		all = append(all, dir(strings.Repeat("d/", depth)+"x"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a busy host takes its time
	defer cancel()
	const seconds = "20" // of CPU time; some 1 s is enough
	child := []string{"/proc/self/exe", "unpack", seconds}
	if err := layer.Unpack(ctx, child, bytes.NewReader(pack(t, all...)), filepath.Join(t.TempDir(), "layer")); err != nil {
		t.Error(err)
	}
}

// size changes the size in the last header of a PAX tar that has one block of
// content.
func size(data []byte, field string) []byte {
	return patch(data, len(data)-4*512, 124, field) // after the header: the content, and two blocks that end the tar
}

// patch changes a field of the header at offset at.
func patch(data []byte, at, offset int, field string) []byte {
	h := data[at : at+512]
	copy(h[offset:], field)
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := func(n int) []byte {
		var all []tar.Header
		for i := range n {
			all = append(all, file(fmt.Sprint("f", i), ""))
		}
		return pack(t, all...)
	}
	for name, c := range map[string]struct {
		tar []byte
		lim layer.Limits
		ok  bool
	}{
		"as many":        {many(10), layer.Limits{Entries: 10, Bytes: 0}, true},
		"one more":       {many(11), layer.Limits{Entries: 10, Bytes: 0}, false},
		"left-out ones":  {pack(t, file(strings.Repeat("d/", 10)+"f", "")), layer.Limits{Entries: 10, Bytes: 0}, false},
		"as much":        {pack(t, file("f", "12345")), layer.Limits{Entries: 1, Bytes: 5}, true},
		"a byte more":    {pack(t, file("f", "123"), file("g", "456")), layer.Limits{Entries: 2, Bytes: 5}, false},
		"garbage behind": {append(pack(t, file("f", "x")), bytes.Repeat([]byte{1}, 9000)...), layer.Limits{Entries: 1, Bytes: 5000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := extract(t, c.tar, t.TempDir(), c.lim)
			if c.ok && err != nil || !c.ok && !fault.Is(err, fault.Image) {
				t.Errorf("%v, want it to pass: %v", err, c.ok)
			}
		})
	}
}

func extract(t testing.TB, data []byte, dir string, lim layer.Limits) error {
	t.Helper()
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return layer.Extract(bytes.NewReader(data), root, lim)
}

func TestWhiteouts(t *testing.T) {
	t.Parallel()
	dir := unpacked(t, pack(t,
		file("a/.wh.gone", ""), file("b/.wh..wh..opq", ""), file("b/new", "x"),
		file("here", "x"), file(".wh.here", ""), // removes only the lower one
		dir("dir"), file(".wh.dir", ""), // the lower one is removed, this one stays
		file(".wh.anew", ""), dir("anew"), file(".wh.file", ""), file("file", "y"),
		file(".wh.twice", ""), file(".wh.twice", "")))
	for _, name := range []string{"a/gone", "twice"} {
		if st := stat(t, dir, name); st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
			t.Errorf("%s is no whiteout: %o", name, st.Mode)
		}
	}
	for name, want := range map[string]bool{"a": false, "b": true, "dir": true, "anew": true} {
		if got := xattr(dir, name, "user.overlay.opaque") == "y"; got != want {
			t.Errorf("%s opaque: %v, want %v", name, got, want)
		}
	}
	if read(t, dir, "here") != "x" || read(t, dir, "file") != "y" {
		t.Error("a whiteout hid a file of its own layer")
	}
}

func TestHolesStayHoles(t *testing.T) {
	t.Parallel()
	content := "begin" + strings.Repeat("\x00", 1<<20) + "middle" + strings.Repeat("\x00", 1<<20)
	dir := unpacked(t, pack(t, file("f", content)))
	if got := read(t, dir, "f"); got != content {
		t.Error("content differs")
	}
	if st := stat(t, dir, "f"); st.Blocks*512 > 512<<10 {
		t.Errorf("%d bytes on disk of %d", st.Blocks*512, st.Size)
	}
}

// TestChildHasNoRights examines a child while it waits for the rest of its tar.
func TestChildHasNoRights(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := filepath.Join(t.TempDir(), "layer")
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- layer.Unpack(ctx, []string{"/proc/self/exe", "unpack"}, r, dir)
	}()
	// This is more than a pipe and the child's buffer hold, so the child is
	// working.
	if _, err := w.Write(pack(t, file("f", strings.Repeat("x", 1<<20)))); err != nil {
		t.Fatal(err)
	}
	child := childOf(t, dir)
	tasks, _ := filepath.Glob(filepath.Join(child, "task", "*"))
	for _, task := range tasks {
		status := read(t, task, "status")
		for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t000000008000001b", "CapPrm:\t000000008000001b", "CapBnd:\t000000008000001b", "CapInh:\t0000000000000000", "CapAmb:\t0000000000000000"} {
			if !strings.Contains(status, want) && !cgo {
				t.Errorf("%s: no %q in\n%s", task, want, status)
			}
		}
	}
	if env := read(t, child, "environ"); env != "" {
		t.Errorf("environment %q, want none", env)
	}
	cancel()
	if err := <-ended; !fault.Is(err, fault.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("a canceled layer is left")
	}
	_ = w.Close()
}

// childOf returns the process whose root is dir.
func childOf(t *testing.T, dir string) string {
	t.Helper()
	roots, _ := filepath.Glob("/proc/[0-9]*/root")
	for _, root := range roots {
		if to, err := os.Readlink(root); err == nil && to == dir {
			return filepath.Dir(root)
		}
	}
	t.Fatal("needs root: no child is locked into its directory")
	return ""
}

// What another has made in the place of a layer's directory meanwhile is not the failed
// child's to remove.
func TestFailedChildLeavesAnother(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := filepath.Join(t.TempDir(), "layer")
	ended := make(chan error, 1)
	go func() {
		ended <- layer.Unpack(t.Context(), []string{"/proc/self/exe", "unpack"}, r, dir)
	}()
	// This is more than a pipe and the child's buffer hold, so the child is working.
	if _, err := w.Write(pack(t, file("f", strings.Repeat("x", 2<<20)))[:2<<20]); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "another's"), 0o700); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := <-ended; !fault.Is(err, fault.Image) {
		t.Errorf("%v, want image_error", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "another's")); err != nil {
		t.Errorf("another's directory: %v", err)
	}
}

func TestDeadChildIsAnEngineFault(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "layer")
	err := layer.Unpack(t.Context(), []string{"/bin/false"}, bytes.NewReader(nil), dir)
	if !fault.Is(err, fault.Engine) {
		t.Errorf("%v, want engine_error", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("its directory is left")
	}
}

func TestFullDiskIsStorage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal("needs root: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	err := unpack(t.Context(), pack(t, file("f", strings.Repeat("x", 1<<20))), filepath.Join(dir, "layer"))
	if !fault.Is(err, fault.Storage) || !strings.Contains(err.Error(), "full") {
		t.Errorf("%v, want storage_error: full", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// FuzzExtract extracts arbitrary bytes. Extracting may fail, but must not touch
// the canary beside the layer nor leave anything else there.
func FuzzExtract(f *testing.F) {
	for _, seed := range [][]byte{
		pack(f, dir("d"), file("d/f", "x"), symlink("l", "../canary"), hardlink("h", "d/f")),
		pack(f, symlink("l", ".."), file("l/canary", "x")),
		pack(f, file(".wh.f", ""), file("d/.wh..wh..opq", ""), attr(file("f", "x"), "user.a", "b")),
		pack(f, dir("a/b/c"), symlink("a/b/l", "../../.."), hardlink("h", "a/b/l/canary")),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		above := t.TempDir()
		canary, dir := filepath.Join(above, "canary"), filepath.Join(above, "layer")
		if err := errors.Join(os.WriteFile(canary, []byte("safe"), 0o600), os.Mkdir(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		before := stat(t, above, "canary")
		_ = extract(t, data, dir, layer.Limits{Entries: 1000, Bytes: 1 << 20})
		if after := stat(t, above, "canary"); *after != *before {
			t.Errorf("the canary changed: %+v, was %+v", after, before)
		}
		if left, _ := os.ReadDir(above); len(left) != 2 {
			t.Errorf("outside there is now: %v", left)
		}
	})
}
