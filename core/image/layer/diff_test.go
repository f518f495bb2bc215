package layer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/api"
)

// TestDiff compares stacks of layers. A layer is a list of paths: DIR/ is a directory, DIR/!
// an opaque one, -PATH a whiteout, and a file has what stands behind its = as content.
func TestDiff(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root: a whiteout is a device, and layers have owners")
	}
	t.Parallel()
	for name, tt := range map[string]struct {
		common, old, now []string // one text a layer
		after            string
		want             string
	}{
		"nothing":                          {common: []string{"a=1 d/ d/b=2"}, want: ""},
		"added":                            {common: []string{"a=1"}, now: []string{"b=2 d/ d/e=3"}, want: "+/b +/d +/d/e"},
		"changed":                          {common: []string{"a=1 d/ d/b=2"}, now: []string{"a=22 d/ d/b=33"}, want: "*/a */d/b"},
		"removed":                          {common: []string{"a=1 d/ d/b=2"}, now: []string{"-a -d"}, want: "-/a -/d"},
		"removed what was not there":       {common: []string{"a=1"}, now: []string{"-b"}, want: ""},
		"a directory that is opaque":       {common: []string{"d/ d/a=1 d/b=2"}, now: []string{"d/! d/b=22 d/c=3"}, want: "-/d/a */d/b +/d/c"},
		"a file becomes a directory":       {common: []string{"x=1"}, now: []string{"x/ x/a=1"}, want: "*/x +/x/a"},
		"a directory becomes a file":       {common: []string{"x/ x/a=1"}, now: []string{"x=1"}, want: "*/x"},
		"back again":                       {common: []string{"a=1"}, now: []string{"-a", "a=22"}, want: "*/a"},
		"added and removed":                {common: []string{"a=1"}, now: []string{"b=1", "-b"}, want: ""},
		"a copy that is equal":             {common: []string{"a=1"}, old: []string{"b=2 d/ d/c=3"}, now: []string{"b=2 d/ d/c=3"}, want: ""},
		"the old one has more":             {common: []string{"a=1"}, old: []string{"b=2 -a"}, now: []string{"c=3"}, want: "+/a -/b +/c"},
		"the old one hid a directory":      {common: []string{"d/ d/a=1"}, old: []string{"-d"}, now: nil, want: "+/d +/d/a"},
		"the old one was opaque":           {common: []string{"d/ d/a=1"}, old: []string{"d/! d/b=2"}, now: nil, want: "+/d/a -/d/b"},
		"parts of several layers":          {common: []string{"d/ d/a=1", "d/ d/b=1"}, now: []string{"d/ -d/a", "d/ d/b=22"}, want: "-/d/a */d/b"},
		"behind a path":                    {common: []string{"a=1"}, now: []string{"b=2 d/ d/e=3 d/f=4 g=5"}, after: "/d/e", want: "+/d/f +/g"},
		"behind a path, the order":         {now: []string{"d/ d/e=3 d.x=1 d-x=1"}, after: "/d", want: "+/d/e +/d-x +/d.x"},
		"a name that only begins the same": {now: []string{"d/ d/e=3 de/ de/f=1"}, after: "/d/e", want: "+/de +/de/f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			err := Diff(States{Common: stack(t, tt.common), Old: stack(t, tt.old), Now: stack(t, tt.now)}, tt.after, func(c api.Change) bool {
				got = append(got, map[string]string{api.DiffAdded: "+", api.DiffChanged: "*", api.DiffRemoved: "-"}[c.Kind]+c.Path)
				return true
			})
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// stack makes layers and opens them.
func stack(t *testing.T, layers []string) (opened []*os.File) {
	t.Helper()
	for _, text := range layers {
		dir := t.TempDir()
		fill(t, dir, strings.Fields(text))
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		opened = append(opened, f)
	}
	return opened
}

// fill makes the entries of a layer. All times are the same: what differs, differs by its
// size or kind.
func fill(t *testing.T, dir string, entries []string) {
	t.Helper()
	for _, entry := range entries {
		path, content, isFile := strings.Cut(entry, "=")
		hidden, isHidden := strings.CutPrefix(path, "-")
		opaque := strings.HasSuffix(path, "/!")
		place := filepath.Join(dir, strings.TrimSuffix(hidden, "!"))
		var err error
		switch {
		case isHidden:
			err = unix.Mknod(place, unix.S_IFCHR, 0)
		case isFile:
			err = os.WriteFile(place, []byte(content), 0o600)
		default:
			err = os.Mkdir(place, 0o700)
		}
		if err == nil && opaque {
			err = unix.Setxattr(place, opaqueAttribute, []byte("y"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, entry := range slices.Backward(entries) { // what is in a directory comes before it
		path, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(entry, "-"), "!"), "=")
		at := []unix.Timespec{{Sec: 1e9}, {Sec: 1e9}}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, path), at, 0); err != nil {
			t.Fatal(err)
		}
	}
}
