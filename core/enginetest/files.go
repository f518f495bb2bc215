package enginetest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// dir returns a directory that only this box uses, also in an engine without
// isolation.
func (s *suite) dir(t *testing.T, box *core.Box) string {
	t.Helper()
	dir := "/tmp/files-" + box.ID()
	s.shell(t, box, "mkdir -m 755 "+dir).wants(t, exited(0))
	if s.Rootfs == "/" {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	return dir
}

func uploads(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	dir := s.dir(t, box)
	s.shell(t, box, "cd "+dir+"; mkdir sub; echo old >kept; chmod 750 kept; ln -s kept link; ln -s sub into").wants(t, exited(0))
	mode := 0o4755
	for _, tt := range []struct {
		dest, name, want, attributes string
		mode                         *int
	}{
		{"/new", "x", "/new", "644 0 regular file", nil},
		{"/a/b/c", "x", "/a/b/c", "644 0 regular file", nil},
		{"/sub", "x", "/sub/x", "644 0 regular file", nil},
		{"/sub/", "y", "/sub/y", "644 0 regular file", nil},
		{"/into", "z", "/into/z", "644 0 regular file", nil},
		{"/made/", "x", "/made/x", "644 0 regular file", nil},
		{"/kept", "x", "/kept", "750 0 regular file", nil},
		{"/link", "x", "/link", "644 0 regular file", nil},
		{"/moded", "x", "/moded", "4755 0 regular file", &mode},
		{"/a/../dots", "x", "/dots", "644 0 regular file", nil},
		{"/with space\n and 'quote'", "x", "/with space\n and 'quote'", "644 0 regular file", nil},
		{"/" + strings.Repeat("n", 255), "x", "/" + strings.Repeat("n", 255), "644 0 regular file", nil},
		{"/名前 и имя", "", "/名前 и имя", "644 0 regular file", nil},
	} {
		text := "the content of " + tt.dest
		got, err := box.Upload(ctx, core.Upload{Dest: dir + tt.dest, Name: tt.name, Mode: tt.mode}, strings.NewReader(text))
		if err != nil || got.Dest != dir+tt.want || got.Size != int64(len(text)) {
			t.Errorf("%q: got %+v, %v", tt.dest, got, err)
		}
		quoted := "'" + strings.ReplaceAll(dir+tt.want, "'", `'\''`) + "'"
		r := s.shell(t, box, "stat -c '%a %u %F' "+quoted+"; cat "+quoted)
		if r.out != tt.attributes+"\n"+text {
			t.Errorf("%q: holds %q, %s; want %s", tt.dest, r.out, r.err, tt.attributes)
		}
		back, size, err := s.download(t, box, dir+tt.want, false)
		if err != nil || back != text || size != int64(len(text)) {
			t.Errorf("%q: downloaded %q, %d, %v", tt.want, back, size, err)
		}
	}
	early, late := 0o644, 0o751
	_, err := box.Upload(s.context(t), core.Upload{Dest: dir + "/late", Mode: &early, LateMode: func() *int { return &late }}, strings.NewReader("x"))
	if r := s.shell(t, box, "stat -c %a "+dir+"/late"); err != nil || r.out != "751\n" {
		t.Errorf("a mode behind the content: %v, %q", err, r.out)
	}
	if r := s.shell(t, box, "cat "+dir+"/sub/kept "+dir+"/kept; find "+dir+" -name '.*' -type f"); r.out != "the content of /kept" {
		t.Errorf("left %q", r.out)
	}
}

func (s *suite) download(t *testing.T, box *core.Box, path string, asTar bool) (content string, size int64, err error) {
	t.Helper()
	d, err := box.Download(s.context(t), options.Download{Path: path, Tar: asTar})
	if err != nil {
		return "", 0, err
	}
	b, err := io.ReadAll(d)
	return string(b), d.Size, errors.Join(err, d.Close())
}

func filesRefused(t *testing.T, s *suite) {
	ctx := s.context(t)
	box, stopped := s.box(t), s.box(t)
	dir := s.dir(t, box)
	s.shell(t, box, "cd "+dir+"; mkdir sub; mkfifo fifo; ln -s loop loop; ln -s /nosuch nowhere; echo x >file").wants(t, exited(0))
	others := map[string]fault.Kind{"box_aaaaaaaaaaaaaaaaaaaa": fault.BoxNotFound, "../x": fault.BoxNotFound}
	if s.stops(t, stopped) {
		others[stopped.ID()] = fault.InvalidState
	}
	for path, kind := range map[string]fault.Kind{
		dir + "/nosuch": fault.FileNotFound, dir + "/nowhere": fault.FileNotFound, dir + "/file/below": fault.FileNotFound,
		dir: fault.IsDirectory, dir + "/sub": fault.IsDirectory, "/": fault.IsDirectory,
		dir + "/fifo": fault.InvalidArgument, dir + "/loop": fault.InvalidArgument, "/dev/null": fault.InvalidArgument,
		"/proc/version": fault.InvalidArgument, "": fault.InvalidArgument, "relative": fault.InvalidArgument, "/a\x00b": fault.InvalidArgument,
		"/" + strings.Repeat("n", 256): fault.InvalidArgument, "/" + strings.Repeat("x/", 3000): fault.InvalidArgument,
	} {
		_, _, err := s.download(t, box, path, false)
		if !fault.Is(err, kind) {
			t.Errorf("download of %.60q: got %v, want %v", path, err, kind)
		}
	}
	for _, u := range []core.Upload{
		{Dest: "relative", Name: "x"}, {Dest: "", Name: "x"}, {Dest: dir + "/"}, {Dest: dir + "/", Name: ".."}, {Dest: dir + "/", Name: "a/b"},
		{Dest: dir + "/fifo", Name: "x"}, {Dest: dir + "/file/below", Name: "x"}, {Dest: dir + "/loop/x", Name: "x"}, {Dest: "/dev/null", Name: "x"},
	} {
		_, err := box.Upload(ctx, u, strings.NewReader("text"))
		if !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("upload to %+v: got %v", u, err)
		}
	}
	for id, kind := range others {
		_, err := s.engine.Download(ctx, id, options.Download{Path: "/etc/passwd"})
		want(t, err, kind)
		_, err = s.engine.Upload(ctx, id, core.Upload{Dest: "/tmp/x"}, strings.NewReader(""))
		want(t, err, kind)
	}
}

// brokenUpload tests that nothing is left of an upload that broke off.
func brokenUpload(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	dir := s.dir(t, box)
	s.shell(t, box, "echo old >"+dir+"/file").wants(t, exited(0))
	broke := errors.New("the client has disconnected")
	for _, dest := range []string{dir + "/file", dir + "/a/b/c"} {
		_, err := box.Upload(ctx, core.Upload{Dest: dest}, io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(broke)))
		if !errors.Is(err, broke) {
			t.Errorf("got %v", err)
		}
	}
	r := s.shell(t, box, "cd "+dir+"; until test \"$(find . -type f)\" = ./file; do sleep 0.05; done; cat file")
	if r.out != "old\n" {
		t.Errorf("left %q", r.out)
	}
}

func tars(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	dir := s.dir(t, box)
	s.shell(t, box, "mkdir -p "+dir+"/src/sub; cd "+dir+"/src; echo one >one; chmod 600 one; echo two >sub/two; ln -s ../one sub/link; mkfifo fifo; mkdir -m 700 empty; rm fifo").wants(t, exited(0))
	packed, size, err := s.download(t, box, dir+"/src", true)
	if err != nil || size != -1 {
		t.Fatal(size, err)
	}
	var names []string
	for tr := tar.NewReader(strings.NewReader(packed)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimSuffix(h.Name, "/"))
	}
	slices.Sort(names)
	if want := []string{"src", "src/empty", "src/one", "src/sub", "src/sub/link", "src/sub/two"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	got, err := box.Upload(ctx, core.Upload{Dest: dir + "/copy/here", Tar: true}, strings.NewReader(packed))
	if err != nil || got.Dest != dir+"/copy/here" || got.Size != 8 {
		t.Errorf("got %+v, %v", got, err)
	}
	r := s.shell(t, box, "cd "+dir+"/copy/here/src; stat -c '%a %n' one empty; readlink sub/link; cat sub/link sub/two")
	if r.out != "600 one\n700 empty\n../one\none\ntwo\n" {
		t.Errorf("got %q, %s", r.out, r.err)
	}
	_, err = box.Upload(ctx, core.Upload{Dest: dir + "/x", Tar: true}, strings.NewReader(strings.Repeat("garbage ", 200)))
	want(t, err, fault.InvalidArgument)
}
