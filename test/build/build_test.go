// Package build_test builds images of recipes in real boxes.
package build_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/gzip"

	"sandbox/api"
	"sandbox/core/build"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/leak"
	"sandbox/test/programs"
	"sandbox/test/registry"
	"sandbox/test/rootfs"
)

func TestMain(m *testing.M) { leak.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// home is a home with the image "base", a busybox.
type home struct {
	*local.Host
	t testing.TB
}

func newHome(t testing.TB) home {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: boxes are made of namespaces, mounts and cgroups")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte("pull = \"never\"\npool = 0\n"), 0o600)) // no image is looked for elsewhere, and no box is made but for a step
	host, err := local.Open(local.Config{Home: dir, HelperDir: programs.Dir()})
	must(t, err)
	t.Cleanup(func() { must(t, host.Close(context.Background())) })
	_, err = host.Images.Import(t.Context(), "base", rootfs.Busybox(t), nil)
	must(t, err)
	return home{host, t}
}

// report notes how a build comes along.
type report struct {
	steps  []api.BuildStep // that have ended
	begun  int
	output strings.Builder
}

func (r *report) Pull(api.ImageProgress) {}

func (r *report) Step(s api.BuildStep) {
	if s.Stage == api.StepBegun {
		r.begun++
		return
	}
	r.steps = append(r.steps, s)
}

func (r *report) Output(_ int, _ bool, p []byte) error {
	r.output.Write(p)
	return nil
}

// context returns the tree of files. A name with "/" at its end is a directory.
func (h home) context(files map[string]string) *tree.Tree {
	h.t.Helper()
	dir := h.t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		must(h.t, errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)))
	}
	made, err := tree.Open(h.t.Context(), dir)
	must(h.t, err)
	h.t.Cleanup(func() { must(h.t, made.Close()) })
	return made
}

// build builds a recipe without a network.
func (h home) build(text string, files map[string]string, change ...func(*build.Options)) (api.Image, *report, error) {
	h.t.Helper()
	r := &report{}
	o := build.Options{Recipe: []byte(text), Context: h.context(files), Name: "built", NoNetwork: true, CPUs: 1, MemoryMiB: 64, Report: r}
	for _, c := range change {
		c(&o)
	}
	img, err := h.Builder().Build(h.t.Context(), o)
	all, listing := h.List(h.t.Context())
	if listing != nil || len(all) > 0 {
		h.t.Errorf("behind the build there are the boxes %v, %v", all, listing)
	}
	return img, r, err
}

// built builds a recipe, or fails the test.
func (h home) built(text string, files map[string]string, change ...func(*build.Options)) (api.Image, *report) {
	h.t.Helper()
	img, r, err := h.build(text, files, change...)
	must(h.t, err)
	return img, r
}

// sh runs a script in a new box of an image, as a user; "" for the image's.
func (h home) sh(image, user, script string) string {
	h.t.Helper()
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.Network, o.User = image, 1, 64, options.NetworkNone, user
	b, _, err := h.Create(h.t.Context(), o)
	must(h.t, err)
	defer func() { must(h.t, b.Remove(context.Background(), true)) }()
	out, _ := boxes.Output(h.t, h.Engine, b.ID(), options.Exec{Cmd: []string{"sh", "-c", script}})
	return out
}

func packed(t *testing.T, entries ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	tw := tar.NewWriter(z)
	for _, h := range entries {
		must(t, tw.WriteHeader(&h))
		_, err := tw.Write(bytes.Repeat([]byte("x"), int(h.Size)))
		must(t, err)
	}
	must(t, errors.Join(tw.Close(), z.Close()))
	return b.String()
}

const whole = `ARG BASE=base
FROM ${BASE} AS maker
WORKDIR /out/sub
RUN echo made >file && ln -s file link && chown -R 5:6 /out && chmod 4755 file && adduser -D -u 1234 app 2>/dev/null || echo 'app:x:1234:1234::/home/app:/bin/sh' >>/etc/passwd
FROM base
ARG GREETING=hello
ENV PATH=/opt:/bin:/usr/bin:/sbin GREETING=$GREETING
RUN echo 'app:x:1234:4321::/:/bin/sh' >>/etc/passwd && echo 'staff:x:77:' >>/etc/group && echo $GREETING from the step && echo $HIDDEN >/hidden
COPY a.txt /srv/renamed.txt
COPY --chown=app:staff --chmod=0640 dir /srv/dir
COPY *.txt /srv/many/
ADD archive.tgz /srv/unpacked/
COPY --from=maker /out/sub /srv/from
COPY --from=0 /out/sub/link /srv/one
WORKDIR /srv/work
USER app
LABEL maker="the test"
EXPOSE 8080
ENTRYPOINT ["/bin/echo"]
CMD ["$GREETING"]
`

// TestWhole has every instruction of the subset do what docker does.
func TestWhole(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	files := map[string]string{
		"a.txt": "a", "b.txt": "b", "dir/x": "x", "dir/deep/y": "y", "dir/ignored": "", ".dockerignore": "**/ignored",
		"archive.tgz": packed(t, tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o750, Uid: 8, Gid: 9}, tar.Header{Name: "d/f", Typeflag: tar.TypeReg, Mode: 0o600, Size: 3, Uid: 10, Gid: 11}),
	}
	img, r := h.built(whole, files, func(o *build.Options) { o.Args = map[string]string{"GREETING": "good day"} })
	if !strings.Contains(r.output.String(), "good day from the step") {
		t.Errorf("the steps printed %q", r.output.String())
	}
	if n := len(r.steps); n != 19 || r.steps[n-1].Step != n || r.steps[n-1].Steps != n {
		t.Errorf("it told of %d steps, of which the last is %+v", n, r.steps[n-1])
	}
	const want = "/srv/work app [/bin/echo] [$GREETING] map[maker:the test] [8080/tcp]"
	if got := fmt.Sprint(img.WorkingDir, " ", img.User, " ", img.Entrypoint, " ", img.Cmd, " ", img.Labels, " ", img.ExposedPorts); got != want {
		t.Errorf("the image is %s, want %s", got, want)
	}
	if got := h.sh("built", "", "pwd; id -u; echo $GREETING"); got != "/srv/work\n1234\ngood day\n" {
		t.Errorf("its command is in %q", got)
	}
	const tell = `cd /srv; stat -c '%n %a %u:%g' renamed.txt dir dir/x dir/deep dir/deep/y many/b.txt unpacked/d unpacked/d/f from from/file one /srv/work; readlink from/link; cat one; ls dir; ls many`
	const wantFiles = `renamed.txt 644 0:0
dir 755 1234:77
dir/x 640 1234:77
dir/deep 640 1234:77
dir/deep/y 640 1234:77
many/b.txt 644 0:0
unpacked/d 750 8:9
unpacked/d/f 600 10:11
from 755 0:0
from/file 4755 5:6
one 4755 5:6
/srv/work 755 0:0
file
made
deep
x
a.txt
b.txt
`
	if got := h.sh("built", "0", tell); got != wantFiles {
		t.Errorf("got:\n%s\nwant:\n%s", got, wantFiles)
	}
}

// stages returns the stages of the steps that have ended.
func (r *report) stages() []api.BuildStage {
	var all []api.BuildStage
	for _, s := range r.steps {
		all = append(all, s.Stage)
	}
	return all
}

// cached counts the steps whose result was there.
func (r *report) cached() int {
	return len(r.steps) - len(slices.DeleteFunc(r.stages(), func(s api.BuildStage) bool { return s == api.StepCached }))
}

// changing is a reporter that is called as each step begins.
type changing struct {
	report
	begun func()
}

func (r *changing) Step(s api.BuildStep) {
	if s.Stage == api.StepBegun {
		r.begun()
	}
	r.report.Step(s)
}

// TestContextChanges has files change after the digests were taken under which a step is
// noted, and before they are copied. A later build of the files as they were has these.
func TestContextChanges(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := t.TempDir()
	write := func(text string) { must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644)) }
	of := func(begun func()) func(*build.Options) {
		return func(o *build.Options) {
			made, err := tree.Open(t.Context(), dir)
			must(t, err)
			t.Cleanup(func() { must(t, made.Close()) })
			o.Context, o.Report = made, &changing{begun: begun}
		}
	}
	entry := func(name string) string { // of a tar, without its end
		var b bytes.Buffer
		must(t, tar.NewWriter(&b).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}))
		return b.String()
	}
	for what, tt := range map[string]struct {
		step, first, then, tell string
		fails                   bool
	}{
		"same size": {"COPY f /f", "one", "two", "one", true},
		"longer":    {"COPY f /f", "1", "longer", "1", true},
		"appended":  {"COPY f /f", "first", "first and more", "first", false},
		"tar":       {"ADD f /d/", entry("x"), entry("x") + entry("y"), "x\n", false},
	} {
		recipe := "FROM base\n" + tt.step + "\n"
		write(tt.first)
		if _, _, err := h.build(recipe, nil, of(func() { write(tt.then) })); fault.Is(err, fault.InvalidArgument) != tt.fails || !tt.fails && err != nil {
			t.Errorf("%s: the build ended with %v", what, err)
		}
		write(tt.first)
		h.built(recipe, nil, of(func() {}))
		if got := h.sh("built", "", "cat /f 2>/dev/null || ls /d"); got != tt.tell {
			t.Errorf("%s: the image has %q, want %q", what, got, tt.tell)
		}
	}
}

// TestCache has a step carried out again when anything that it depends on has changed, and
// never otherwise: a build that is cached as a whole starts no box.
func TestCache(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const text = "FROM base\nARG A=1\nRUN echo one\nCOPY d /d\nENV B=$A\nRUN echo two\nFROM base\nCOPY --from=0 /d /e\n"
	files := map[string]string{"d/f": "1", "other": "1"}
	first, r := h.built(text, files)
	if r.cached() != 0 || r.begun != 4 {
		t.Fatalf("the first build told %v", r.steps)
	}
	with := func(change map[string]string) map[string]string {
		all := maps.Clone(files)
		maps.Copy(all, change)
		return all
	}
	second, r := h.built(text, with(map[string]string{"other": "2"}))
	if r.cached() != 4 || r.begun != 0 || second.ID != first.ID || !slices.Equal(second.Layers, first.Layers) {
		t.Errorf("the same build: %d of 4 steps cached, image %s after %s", r.cached(), second.ID, first.ID)
	}
	for what, tt := range map[string]struct {
		text   string
		files  map[string]string
		change func(*build.Options)
		cached int
	}{
		"the last command":      {strings.Replace(text, "two", "three", 1), files, nil, 2},
		"the first command":     {strings.Replace(text, "one", "three", 1), files, nil, 0},
		"a file":                {text, with(map[string]string{"d/f": "2"}), nil, 1},
		"one more file":         {text, with(map[string]string{"d/g": ""}), nil, 1},
		"an argument":           {text, files, func(o *build.Options) { o.Args = map[string]string{"A": "2"} }, 0},
		"a variable":            {strings.Replace(text, "ENV B=$A", "ENV B=$A C=1", 1), files, nil, 2},
		"a label":               {strings.Replace(text, "ENV B=$A", "LABEL a=b\nENV B=$A", 1), files, nil, 4},
		"no cache":              {text, files, func(o *build.Options) { o.NoCache = true }, 0},
		"the first stage alone": {text, files, func(o *build.Options) { o.Target = "0" }, 3},
	} {
		_, r := h.built(tt.text, tt.files, func(o *build.Options) {
			if tt.change != nil {
				tt.change(o)
			}
		})
		if r.cached() != tt.cached {
			t.Errorf("%s: %d steps cached, want %d", what, r.cached(), tt.cached)
		}
	}
}

// TestPrune keeps the steps of images, which take no room, and removes the others.
func TestPrune(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const text = "FROM base\nRUN echo one >/one\n"
	h.built(text, nil)
	h.built(text+"RUN head -c 1000000 /dev/zero >/two\n", nil, func(o *build.Options) { o.Name = "other" })
	must(t, h.Images.Remove(t.Context(), "other", false))
	done, err := h.Images.Prune(t.Context(), false)
	if err != nil || done.Steps != 1 || done.Layers != 1 || done.Bytes < 1_000_000 {
		t.Errorf("pruned %+v, %v", done, err)
	}
	if _, r := h.built(text+"RUN head -c 1000000 /dev/zero >/two\n", nil); r.cached() != 1 {
		t.Errorf("%d steps cached, want 1", r.cached())
	}
	must(t, h.Images.Remove(t.Context(), "built", false))
	must(t, h.Images.Remove(t.Context(), "base", false))
	if done, err = h.Images.Prune(t.Context(), false); err != nil || done.Steps != 2 || done.Layers != 3 {
		t.Errorf("pruned %+v, %v", done, err)
	}
}

// TestScratch builds an image of nothing but a file.
func TestScratch(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	img, _ := h.built("FROM base\nFROM scratch\nCOPY --from=base /bin/busybox /bin/\nCMD [\"/bin/busybox\", \"id\"]\n", nil, func(o *build.Options) { o.Name = "" })
	if !strings.HasPrefix(img.Name, "build:") {
		t.Errorf("an image without a name is called %s", img.Name)
	}
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.Network = img.Name, 1, 64, options.NetworkNone
	b, _, err := h.Create(t.Context(), o)
	must(t, err)
	defer func() { must(t, b.Remove(context.Background(), true)) }()
	result, err := b.Run(t.Context(), "/bin/busybox", "ls", "/bin")
	if err != nil || result.Stdout != "busybox\n" {
		t.Errorf("it has %+v, %v", result, err)
	}
}

// TestDeep has a box on as many layers as there can be, of which no snapshot can be taken;
// what its failure says to do gives a box of which one can.
func TestDeep(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	archive := filepath.Join(t.TempDir(), "deep")
	must(t, tarball.WriteToFile(archive, name.MustParseReference("deep"), registry.Deep(t, image.MaxLayers)))
	_, err := h.Images.Import(t.Context(), "deep", archive, nil)
	must(t, err)
	h.taken("deep", fault.ResourceExhausted, "COPY --from=deep:latest / /")
	h.built("FROM scratch\nCOPY --from=deep:latest / /\n", nil, func(o *build.Options) { o.Name = "flat" })
	h.taken("flat", 0, "")
}

// taken wants snapshots of a box of an image, which runs and which is stopped, to succeed,
// or to fail in a way; the box has its files and goes on in any case.
func (h home) taken(image string, kind fault.Kind, says string) {
	h.t.Helper()
	o := options.Defaults()
	o.Image, o.User, o.CPUs, o.MemoryMiB, o.Network, o.AutoRemove = image, "root", 1, 64, options.NetworkNone, false
	b, _, err := h.Create(h.t.Context(), o)
	must(h.t, err)
	defer func() { must(h.t, b.Remove(context.Background(), true)) }()
	take := func(name string) {
		h.t.Helper()
		if _, err := b.Snapshot(h.t.Context(), name); (err == nil) != (kind == 0) || err != nil && (!fault.Is(err, kind) || !strings.Contains(err.Error(), says)) {
			h.t.Errorf("a snapshot of a box of %s: %v", image, err)
		}
	}
	take(image + "-running")
	_, err = b.Stop(h.t.Context(), 0)
	must(h.t, err)
	take(image + "-stopped")
	_, err = b.Start(h.t.Context())
	must(h.t, err)
	if result, err := b.Run(h.t.Context(), "sh", "-c", "ls /file* | wc -l; touch /more"); err != nil || result.Stdout != "126\n" {
		h.t.Errorf("the box of %s has %+v, %v", image, result, err)
	}
}

// TestCopyAll copies all files of an image, but not the /dev, /proc and /sys of the box that
// they are read from.
func TestCopyAll(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, source := range []string{"/", "/*"} {
		h.built("FROM scratch\nCOPY --from=base "+source+" /all/\n", nil, func(o *build.Options) { o.Name = "all" })
		h.built("FROM base\nCOPY --from=all /all /all\n", nil)
		got := h.sh("built", "0", "cd /all; ls -d dev proc sys null mqueue kernel 2>&1 | grep -v 'No such'; find . -name busybox")
		if want := map[string]string{"/": "./bin/busybox\n", "/*": "./busybox\n"}[source]; got != want {
			t.Errorf("of %s it has %q, want %q", source, got, want)
		}
	}
}

// TestFails wants what is wrong to be told with its line, and nothing to be left.
func TestFails(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	before := h.state()
	for what, tt := range map[string]struct {
		text string
		kind fault.Kind
		want string
		ran  int
	}{
		"an unknown instruction":  {"FROM base\nRUN true\nRUM true", fault.InvalidArgument, "line 3", 0},
		"what is not kept":        {"FROM base\nRUN true\nVOLUME /a", fault.InvalidArgument, "line 3", 0},
		"a circle":                {"FROM base AS a\nCOPY --from=b /a /a\nFROM base AS b\nCOPY --from=a /a /a", fault.InvalidArgument, "in a circle", 0},
		"a missing stage":         {"FROM base\nRUN true\nCOPY --from=builder /a /a", fault.ImageNotFound, "line 3: COPY --from=builder: no stage of the recipe has this name", 0},
		"a missing image":         {"FROM base AS a\nRUN true\nFROM none\nCOPY --from=a / /a", fault.ImageNotFound, "line 3", 0},
		"a missing file":          {"FROM base\nRUN true\nCOPY none /a", fault.FileNotFound, "line 3", 0},
		"a file that is ignored":  {"FROM base\nRUN true\nCOPY secret /a", fault.FileNotFound, "line 3", 0},
		"129 layers":              {"FROM base AS a\nCOPY a /a\nFROM a" + strings.Repeat("\nRUN true", 127), fault.ResourceExhausted, "line 130: RUN true: the image would have more than 128 layers", 0},
		"no end":                  {"FROM base\nRUN sleep 1000 & sleep 1000", fault.Timeout, "line 2: RUN sleep 1000 & sleep 1000: the command did not end within 2s", 1},
		"a failure":               {"FROM base\nRUN exit 3", fault.Image, "line 2: RUN exit 3: the command ended with exit code 3", 1},
		"no such program":         {"FROM base\nRUN [\"/none\"]", fault.Image, "can't be started", 1},
		"no such user":            {"FROM base\nCOPY --chown=nobody-here a /a", fault.InvalidArgument, `no user "nobody-here"`, 1},
		"no such file of a stage": {"FROM base AS a\nFROM base\nCOPY --from=a /none /a", fault.FileNotFound, "line 3", 1},
		"a device of a tar":       {"FROM base\nADD device.tgz /a/", fault.InvalidArgument, "line 2", 1},
	} {
		_, r, err := h.build(tt.text, map[string]string{
			"a": "a", "secret": "s", ".dockerignore": "secret", "device.tgz": packed(t, tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}),
		}, func(o *build.Options) { o.Timeout = 2 * time.Second })
		if !fault.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v (%v), want %v: ...%s", what, err, fault.Of(err).Kind, tt.kind, tt.want)
		}
		if r.begun != tt.ran {
			t.Errorf("%s: %d steps began, want %d", what, r.begun, tt.ran)
		}
	}
	_, err := h.Images.Prune(t.Context(), false)
	must(t, err)
	if after := h.state(); after != before {
		t.Errorf("there was %s, and is %s", before, after)
	}
}

// state lists what is in the store.
func (h home) state() string {
	h.t.Helper()
	var all []string
	for _, dir := range []string{"images", "layers", "steps", "records", "boxes"} {
		entries, _ := os.ReadDir(filepath.Join(h.Home, dir))
		for _, e := range entries {
			all = append(all, dir+"/"+e.Name())
		}
	}
	return strings.Join(all, " ")
}

// TestCanceled ends a build in the middle of a command.
func TestCanceled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := h.Builder().Build(ctx, build.Options{
		Recipe: []byte("FROM base\nRUN echo ready; sleep 1000"), NoNetwork: true, CPUs: 1, MemoryMiB: 64, Report: &canceler{cancel: cancel},
	})
	if !fault.Is(err, fault.Canceled) {
		t.Errorf("got %v", err)
	}
	if all, err := h.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

type canceler struct {
	report
	cancel func()
}

func (c *canceler) Output(int, bool, []byte) error {
	c.cancel()
	return nil
}
