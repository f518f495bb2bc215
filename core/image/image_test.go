package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/image"
	"sandbox/core/image/layer"
	"sandbox/test/members"
	"sandbox/test/rootfs"
)

// TestMain lets the test program act as the child that unpacks.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "unpack" {
		os.Exit(layer.Child())
	}
	os.Exit(m.Run())
}

// unpacker takes the place of the shim: it starts the same child.
type unpacker struct {
	calls, flushes atomic.Int64
	// before is called before each unpacking if it is not nil.
	before func()
}

func (u *unpacker) Unpack(ctx context.Context, tar io.Reader, dir string) error {
	u.calls.Add(1)
	if u.before != nil {
		u.before()
	}
	return layer.Unpack(ctx, []string{"/proc/self/exe", "unpack"}, tar, dir)
}

// Flush does nothing: a test flushes itself, or cuts the power before.
func (u *unpacker) Pack(ctx context.Context, dir string, w io.Writer) error {
	root, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return layer.Pack(ctx, root, w, layer.DefaultLimits)
}

func (u *unpacker) Flush(context.Context) error {
	u.flushes.Add(1)
	return nil
}

// fixture is a store with a home of its own.
type fixture struct {
	*image.Store
	home  string
	u     *unpacker
	inUse []core.ImageUse
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newPuller(t, image.Sources{Never: true})
}

// newPuller returns a fixture whose store can pull.
func newPuller(t testing.TB, from image.Sources) *fixture {
	t.Helper()
	f := &fixture{home: t.TempDir(), u: &unpacker{}}
	s, err := image.Open(image.Config{Home: f.home, Unpacker: f.u, Sources: from, InUse: func() ([]core.ImageUse, error) { return f.inUse, nil }})
	if err != nil {
		t.Fatal(err)
	}
	f.Store = s
	return f
}

// imported imports an image, or fails the test.
func (f *fixture) imported(t testing.TB, name, source string) image.Info {
	t.Helper()
	info, err := f.Import(t.Context(), name, source, nil)
	if err != nil {
		t.Fatal("needs root: ", err)
	}
	return info
}

// layers returns the names in the layers directory, except locks and records of
// layers.
func (f *fixture) layers(t testing.TB) []string {
	t.Helper()
	all, _ := filepath.Glob(filepath.Join(f.home, "layers", "*"))
	return slices.DeleteFunc(all, func(name string) bool {
		return filepath.Base(name) == "lock" || filepath.Base(name) == "adding" || filepath.Ext(name) == ".json"
	})
}

// read returns the contents of a file of the image, from the uppermost layer
// that has it.
func (f *fixture) read(t testing.TB, ref, name string) string {
	t.Helper()
	img, err := f.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Backward(img.Layers) {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(data)
		}
	}
	t.Fatalf("no %s in %v", name, img.Layers)
	return ""
}

func pack(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zst(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// source writes the bytes of an image source into a new file and returns its
// path.
func source(t testing.TB, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// built is an image of two layers, in its parts.
type built struct {
	config        map[string]any
	plain, packed [][]byte // one entry for each layer
	types         []string
	nested        bool
	platform      map[string]any
}

// twoLayersHealth is the health check of twoLayers.
var twoLayersHealth = &api.HealthCheck{Test: []string{"CMD", "/check"}, IntervalMS: 5000, TimeoutMS: 4000, StartPeriodMS: 3000, Retries: 2}

func twoLayers(t testing.TB) *built {
	t.Helper()
	a, b := pack(t, map[string]string{"a": "lower", "both": "lower"}), pack(t, map[string]string{"both": "upper", ".wh.a": ""})
	return &built{
		config: map[string]any{
			"architecture": runtime.GOARCH, "os": "linux", "created": "2020-01-02T03:04:05Z",
			"config": map[string]any{
				"Env": []string{"A=b"}, "WorkingDir": "/w", "User": "1000", "Entrypoint": []string{"/e"}, "Cmd": []string{"c"},
				"Healthcheck": map[string]any{"Test": []string{"CMD", "/check"}, "Interval": 5e9, "Timeout": 4e9, "StartPeriod": 3e9, "Retries": 2},
				"StopSignal":  "SIGQUIT", "Labels": map[string]string{"a": "b"}, "ExposedPorts": map[string]any{"80/tcp": map[string]any{}},
			},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(a), "sha256:" + digest(b)}},
		},
		plain: [][]byte{a, b}, packed: [][]byte{gz(t, a), zst(t, b)},
		types: []string{"application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar+zstd"},
	}
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// put adds a blob and returns its descriptor.
func put(files map[string]string, mediaType, data string) map[string]any {
	hex := digest([]byte(data))
	files["blobs/sha256/"+hex] = data
	return map[string]any{"mediaType": mediaType, "digest": "sha256:" + hex, "size": len(data)}
}

const ociIndex = "application/vnd.oci.image.index.v1+json"

// layout returns the files of an OCI layout.
func (b *built) layout(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{"oci-layout": `{"imageLayoutVersion":"1.0.0"}`}
	var layers []any
	for i, data := range b.packed {
		layers = append(layers, put(files, b.types[i], string(data)))
	}
	manifest := put(files, "application/vnd.oci.image.manifest.v1+json", marshal(t, map[string]any{
		"schemaVersion": 2, "layers": layers,
		"config": put(files, "application/vnd.oci.image.config.v1+json", marshal(t, b.config)),
	}))
	if b.platform != nil {
		manifest["platform"] = b.platform
	}
	index := map[string]any{"schemaVersion": 2, "manifests": []any{manifest}}
	if b.nested {
		index = map[string]any{"schemaVersion": 2, "manifests": []any{put(files, ociIndex, marshal(t, index))}}
	}
	files["index.json"] = marshal(t, index)
	return files
}

// docker returns the files that docker save would write.
func (b *built) docker(t testing.TB) map[string]string {
	t.Helper()
	config := marshal(t, b.config)
	name := digest([]byte(config)) + ".json"
	files := map[string]string{name: config}
	var layers []string
	for _, data := range b.plain {
		path := digest(data) + "/layer.tar"
		files[path] = string(data)
		layers = append(layers, path)
	}
	files["manifest.json"] = marshal(t, []any{map[string]any{"Config": name, "RepoTags": []string{"x:y"}, "Layers": layers}})
	return files
}

func dirOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestImportBareSystems(t *testing.T) {
	t.Parallel()
	plain := pack(t, map[string]string{"./etc/x": "text", "./bin/y": strings.Repeat("y", 100_000)})
	odd := pack(t, map[string]string{"blobs/x": "no image", "etc/x": "text"})
	for name, from := range map[string]string{
		"directory":                 dirOf(t, map[string]string{"etc/x": "text"}),
		"plain":                     source(t, plain),
		"gzip":                      source(t, gz(t, plain)),
		"zstd":                      source(t, zst(t, plain)),
		"gzip of an odd system":     source(t, gz(t, odd)),
		"a system that looks alike": source(t, odd),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			info := f.imported(t, "sys", from)
			if got := f.read(t, "sys:latest", "etc/x"); got != "text" {
				t.Errorf("etc/x = %q", got)
			}
			members.Equal(t, "info", members.Of{
				"name": {info.Name, "sys:latest"}, "layers": {len(info.Layers), 1}, "a digest": {strings.HasPrefix(info.ID, "sha256:"), true},
				"a size": {info.Size != 0, true}, "architecture": {info.Architecture, runtime.GOARCH},
			})
			if left := f.layers(t); len(left) != 1 {
				t.Errorf("layers: %v, want one", left)
			}
		})
	}
}

func TestImportImages(t *testing.T) {
	t.Parallel()
	b := twoLayers(t)
	nested := twoLayers(t)
	nested.nested, nested.platform = true, map[string]any{"os": "linux", "architecture": runtime.GOARCH}
	dotted := map[string]string{}
	for name, text := range b.layout(t) {
		dotted["./"+name] = text
	}
	both := b.layout(t)
	maps.Copy(both, b.docker(t))
	for name, from := range map[string]string{
		"layout":              dirOf(t, b.layout(t)),
		"nested layout":       dirOf(t, nested.layout(t)),
		"archive":             source(t, pack(t, b.layout(t))),
		"archive with dots":   source(t, pack(t, dotted)),
		"packed archive":      source(t, gz(t, pack(t, b.layout(t)))),
		"docker":              source(t, pack(t, b.docker(t))),
		"packed docker":       source(t, zst(t, pack(t, b.docker(t)))),
		"docker and a layout": source(t, pack(t, both)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			done := 0
			info, err := f.Import(t.Context(), "example.org:5000/team/app:v1", from, func(p image.Progress) {
				if p.Stage == api.LayerDone && p.Layers == 2 && p.Done == p.Total && p.Total != 0 {
					done += p.Layer
				}
			})
			if err != nil {
				t.Fatal("needs root: ", err)
			}
			if f.read(t, info.Name, "both") != "upper" {
				t.Error("layers are in the wrong order")
			}
			if done != 1+2 {
				t.Errorf("the layers that were reported as done add up to %d", done)
			}
			if want := "sha256:" + digest([]byte(marshal(t, b.config))); info.ID != want {
				t.Errorf("id %s, want %s", info.ID, want)
			}
			got := fmt.Sprintln(info.Env, info.WorkingDir, info.User, info.Entrypoint, info.Cmd, info.CreatedAt, info.Size)
			if want := fmt.Sprintln([]string{"A=b"}, "/w", "1000", []string{"/e"}, []string{"c"}, "2020-01-02 03:04:05 +0000 UTC", len(b.plain[0])+len(b.plain[1])); got != want {
				t.Errorf("config %s, want %s", got, want)
			}
			if !reflect.DeepEqual(info.HealthCheck, twoLayersHealth) || info.StopSignal != "SIGQUIT" {
				t.Errorf("health check %+v, stop signal %q", info.HealthCheck, info.StopSignal)
			}
			if info.Labels["a"] != "b" || !slices.Equal(info.ExposedPorts, []string{"80/tcp"}) {
				t.Errorf("labels %v, exposed ports %v", info.Labels, info.ExposedPorts)
			}
			if cmd, err := f.Command(t.Context(), info.Name); err != nil || !slices.Equal(cmd, []string{"/e", "c"}) {
				t.Errorf("command %q, %v", cmd, err)
			}
			img, err := f.Resolve(t.Context(), info.Name)
			if err != nil || len(img.Layers) != 2 || img.ID != info.ID || img.User != "1000" {
				t.Errorf("Resolve = %+v, %v", img, err)
			}
		})
	}
}

// TestPackEnds ends the reading of a directory that becomes an image.
func TestPackEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := image.Pack(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadAll(r); !fault.Is(err, fault.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

func TestBadSources(t *testing.T) {
	t.Parallel()
	plain := pack(t, map[string]string{"f": strings.Repeat("text", 10_000)})
	packed := gz(t, plain)
	flipped := slices.Clone(packed)
	flipped[len(flipped)-6] ^= 1 // a bit of the checksum
	edit := func(change func(b *built, files map[string]string)) string {
		b := twoLayers(t)
		files := b.layout(t)
		change(b, files)
		return source(t, pack(t, files))
	}
	with := func(change func(b *built)) string {
		b := twoLayers(t)
		change(b)
		return source(t, pack(t, b.layout(t)))
	}
	replace := func(part, old, new string) string {
		return edit(func(_ *built, files map[string]string) {
			for name := range files {
				if strings.HasPrefix(name, part) && strings.Contains(files[name], old) {
					files[name] = strings.ReplaceAll(files[name], old, new)
					return
				}
			}
			t.Error("nothing to replace: ", old)
		})
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	deviceDir := t.TempDir()
	if err := unix.Mknod(filepath.Join(deviceDir, "null"), unix.S_IFCHR, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal("needs root: ", err)
	}
	for name, c := range map[string]struct {
		from string
		kind fault.Kind
		want string
	}{
		"missing":               {"/missing/file", fault.InvalidArgument, "no such file"},
		"fifo":                  {fifo, fault.InvalidArgument, "neither a directory nor a file"},
		"device in a directory": {deviceDir, fault.Image, `"null" is a device`},
		"empty file":            {source(t, nil), fault.Image, "not a tar"},
		"empty tar":             {source(t, pack(t, nil)), fault.Image, "not a tar"},
		"text":                  {source(t, []byte(strings.Repeat("hello ", 1000))), fault.Image, "not a tar"},
		"xz":                    {source(t, []byte("\xfd7zXZ\x00....")), fault.Image, "xz"},
		"truncated gzip":        {source(t, packed[:len(packed)-20]), fault.Image, "unexpected EOF"},
		"wrong checksum":        {source(t, flipped), fault.Image, "checksum"},
		"garbage behind gzip":   {source(t, append(slices.Clone(packed), "garbage garbage"...)), fault.Image, "header"},
		"truncated tar":         {source(t, plain[:20_000]), fault.Image, "damaged tar"},
		"hostile tar":           {source(t, pack(t, map[string]string{"../f": ""})), fault.Image, ".. in it"},

		"other machine": {with(func(b *built) { b.config["architecture"] = "s390x" }), fault.Image, "linux/s390x"},
		"other system":  {with(func(b *built) { b.config["os"] = "windows" }), fault.Image, "windows"},
		"other platform": {with(func(b *built) {
			b.platform = map[string]any{"os": "linux", "architecture": "s390x"}
		}), fault.Image, "linux/s390x"},
		"no layers":        {with(func(b *built) { b.packed = nil; b.config["rootfs"] = nil }), fault.Image, "0 layers"},
		"layers and diffs": {with(func(b *built) { b.packed = b.packed[:1] }), fault.Image, "config 2"},
		"wrong diff id":    {with(func(b *built) { b.packed[0] = gz(t, b.plain[1]) }), fault.Image, "has the digest"},
		"wrong layer digest": {edit(func(b *built, f map[string]string) {
			f["blobs/sha256/"+digest(b.packed[0])] = string(gz(t, append(b.plain[0], 0)))
		}), fault.Image, "has the digest"},
		"diff id of a path": {with(func(b *built) {
			b.config["rootfs"] = map[string]any{"diff_ids": []string{"sha256:" + strings.Repeat("../", 20) + "etc/", "x"}}
		}), fault.Image, "non-hex"},
		"changed config":   {replace("blobs/", `"A=b"`, `"A=c"`), fault.Image, "has the digest"},
		"changed manifest": {replace("blobs/", `"layers":[{`, `"layers":[ {`), fault.Image, "has the digest"},
		"bad index":        {replace("index.json", `{`, `[`), fault.Image, "an index"},
		"no index":         {edit(func(_ *built, f map[string]string) { delete(f, "index.json") }), fault.Image, "index.json"},
		"no layer":         {edit(func(b *built, f map[string]string) { delete(f, "blobs/sha256/"+digest(b.packed[0])) }), fault.Image, "lacks"},
		"unknown layer":    {with(func(b *built) { b.types[0] = "text/plain" }), fault.Image, "unknown type"},
		"giant config":     {with(func(b *built) { b.config["comment"] = strings.Repeat("x", 9<<20) }), fault.Image, "bytes"},
		"no image":         {edit(func(_ *built, f map[string]string) { f["index.json"] = `{"manifests":[]}` }), fault.Image, "no image"},
		"indexes without end": {edit(func(_ *built, f map[string]string) {
			index := put(f, ociIndex, `{"manifests":[]}`)
			for range 8 {
				index = put(f, ociIndex, marshal(t, map[string]any{"manifests": []any{index, index}}))
			}
			f["index.json"] = marshal(t, map[string]any{"manifests": []any{index}})
		}), fault.Image, "32 indexes"},
		"two images": {edit(func(_ *built, f map[string]string) {
			const manifest = "application/vnd.oci.image.manifest.v1+json"
			f["index.json"] = marshal(t, map[string]any{"manifests": []any{put(f, manifest, "{}"), put(f, manifest, "{ }")}})
		}), fault.Ambiguous, "2 images"},
		"docker, two images": {source(t, pack(t, map[string]string{"manifest.json": `[{},{}]`})), fault.Ambiguous, "2 images"},
		"docker, no config":  {source(t, pack(t, map[string]string{"manifest.json": `[{"Config":"c"}]`})), fault.Image, "lacks"},
		"docker, changed config": {source(t, pack(t, map[string]string{
			"manifest.json": fmt.Sprintf(`[{"Config":"%064d.json"}]`, 1), fmt.Sprintf("%064d.json", 1): "{}",
		})), fault.Image, "has the digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			_, err := f.Import(t.Context(), "bad", c.from, nil)
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.want)
			}
			if all, err := f.List(); len(all) != 0 || err != nil {
				t.Errorf("images: %v, %v", all, err)
			}
			for _, left := range f.layers(t) {
				if strings.Contains(left, "tmp-") {
					t.Errorf("left: %s", left)
				}
			}
		})
	}
}

func TestDirKeepsAll(t *testing.T) {
	t.Parallel()
	from := rootfs.Busybox(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal("needs root: ", err)
		}
	}
	path := func(name string) string { return filepath.Join(from, name) }
	must(os.WriteFile(path("setuid"), []byte("x"), 0o600))
	must(os.Chown(path("setuid"), 1000, 65535))
	must(os.Chmod(path("setuid"), 0o4755|os.ModeSetuid))
	must(unix.Lsetxattr(path("setuid"), "user.note", []byte("yes"), 0))
	must(os.Link(path("setuid"), path("again")))
	must(os.Symlink("/nowhere", path("link")))
	must(unix.Mkfifo(path("fifo"), 0o640))
	must(unix.Mknod(path("dev/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	must(unix.Mknod(path("socket"), unix.S_IFSOCK|0o666, 0))
	when := []unix.Timespec{{Sec: 1, Nsec: 2}, {Sec: 3, Nsec: 4}}
	for _, name := range []string{"setuid", "link", "etc"} {
		must(unix.UtimesNanoAt(unix.AT_FDCWD, path(name), when, unix.AT_SYMLINK_NOFOLLOW))
	}

	f := newFixture(t)
	info := f.imported(t, "box", from)
	img, err := f.Resolve(t.Context(), "box")
	must(err)
	for _, name := range []string{".", "bin/busybox", "bin/sh", "setuid", "again", "link", "fifo", "etc", "tmp", "root", "home/user"} {
		var want, got unix.Stat_t
		must(unix.Lstat(path(name), &want))
		must(unix.Lstat(filepath.Join(img.Layers[0], name), &got))
		members.Equal(t, name, members.Of{
			"mode": {got.Mode, want.Mode}, "user": {got.Uid, want.Uid}, "group": {got.Gid, want.Gid}, "time": {got.Mtim, want.Mtim}, "links": {got.Nlink, want.Nlink},
		})
	}
	for _, name := range []string{"socket", "dev/null"} {
		if _, err := os.Lstat(filepath.Join(img.Layers[0], name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want it left out", name, err)
		}
	}
	var note [10]byte
	n, err := unix.Lgetxattr(filepath.Join(img.Layers[0], "setuid"), "user.note", note[:])
	if err != nil || string(note[:n]) != "yes" {
		t.Errorf("user.note: %q, %v", note[:n], err)
	}
	if again := f.imported(t, "box2", from); again.ID != info.ID {
		t.Error("the same directory has another id")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	from := source(t, pack(t, map[string]string{"f": "1"}))
	f.imported(t, "debian", from)
	f.imported(t, "host.example:5000/a/b", from)
	for _, ref := range []string{"debian", "debian:latest", "host.example:5000/a/b:latest"} {
		if _, err := f.Inspect(ref); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
	all, err := f.List()
	if err != nil || len(all) != 2 || all[0].Name != "debian:latest" || all[1].Name != "host.example:5000/a/b:latest" {
		t.Errorf("List = %+v, %v", all, err)
	}
	if _, err := f.Inspect("debian:12"); !fault.Is(err, fault.ImageNotFound) {
		t.Errorf("another tag: %v", err)
	}
	for _, ref := range []string{"", "UPPER", "a b", "../x", "/x", "x:", strings.Repeat("n", 300), "x:" + strings.Repeat("t", 200), "x@sha256:" + strings.Repeat("0", 64)} {
		if _, err := f.Import(t.Context(), ref, from, nil); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("Import %q: %v, want invalid_argument", ref, err)
		}
		if _, err := f.Resolve(t.Context(), ref); !fault.Is(err, fault.Image) {
			t.Errorf("Resolve %q: %v, want image_error", ref, err)
		}
	}
	if _, err := f.Resolve(t.Context(), "missing"); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "sandbox images import NAME SOURCE") {
		t.Errorf("Resolve: %v, want image_error saying how to import", err)
	}
}

func TestImportReplaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, text := range []string{"1", "2"} {
		f.imported(t, "x", source(t, pack(t, map[string]string{"f": text})))
		if got := f.read(t, "x", "f"); got != text {
			t.Errorf("f = %q, want %q", got, text)
		}
	}
	if _, err := f.Import(t.Context(), "x", source(t, []byte("bad")), nil); err == nil || f.read(t, "x", "f") != "2" {
		t.Errorf("a failed import (%v) changed the image", err)
	}
}

func TestLayersAreSharedAndUnpackedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	from := source(t, pack(t, twoLayers(t).docker(t)))
	other, err := image.Open(image.Config{Home: f.home, Unpacker: f.u}) // as another process would open it
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, s := range []*image.Store{f.Store, other, f.Store, other} {
		all.Go(func() {
			if _, err := s.Import(t.Context(), fmt.Sprint("name", i), from, nil); err != nil {
				t.Error("needs root: ", err)
			}
		})
	}
	all.Wait()
	if n := f.u.calls.Load(); n != 2 {
		t.Errorf("unpacked %d times, want each of the 2 layers once", n)
	}
	if left := f.layers(t); len(left) != 2 {
		t.Errorf("layers: %v", left)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := twoLayers(t)
	f.imported(t, "two", source(t, pack(t, b.docker(t))))
	f.imported(t, "one", source(t, b.plain[0]))
	img, err := f.Resolve(t.Context(), "two")
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name   string
		inUse  []core.ImageUse
		ref    string
		layers int
	}{
		{"a box stands on the upper layer, an image on the lower", standOn(img.Layers[1]), "two", 2},
		{"no box, no image", nil, "one", 0},
	}
	for _, s := range steps {
		f.inUse = s.inUse
		if err := f.Remove(t.Context(), s.ref, false); err != nil {
			t.Fatal(s.name, ": ", err)
		}
		if left := f.layers(t); len(left) != s.layers {
			t.Errorf("%s: layers %v, want %d", s.name, left, s.layers)
		}
		if err := f.Remove(t.Context(), s.ref, false); !fault.Is(err, fault.ImageNotFound) {
			t.Errorf("Remove again: %v, want image_not_found", err)
		}
	}
	if records, _ := filepath.Glob(filepath.Join(f.home, "*", "*.json")); len(records) != 0 {
		t.Errorf("records left: %v", records)
	}
}

// TestRemoveThatBreaksOff can't take the second of two layers away, after a box has begun to
// use the first one.
func TestRemoveThatBreaksOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "x", source(t, pack(t, twoLayers(t).docker(t))))
	layers := f.layers(t)
	if err := os.MkdirAll(filepath.Join(f.home, "layers", "tmp-gone-"+filepath.Base(layers[1]), "f"), 0o700); err != nil {
		t.Fatal(err)
	}
	looks := 0
	s, err := image.Open(image.Config{Home: f.home, Unpacker: f.u, InUse: func() ([]core.ImageUse, error) {
		if looks++; looks == 1 {
			return nil, nil
		}
		return standOn(layers[0]), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "x", true); !fault.Is(err, fault.Storage) {
		t.Errorf("%v, want storage_error", err)
	}
	for _, dir := range layers {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}

// standOn returns what is in use while a box stands on layers.
func standOn(layers ...string) []core.ImageUse {
	return []core.ImageUse{{Box: "b", Image: core.Image{Layers: layers}}}
}

// TestRemoveInUse removes images that boxes or aliases need, which force alone
// does, and names the ones that need them.
func TestRemoveInUse(t *testing.T) {
	t.Parallel()
	aliases := map[string]string{"short": "example.org/app:1", "other": "example.org/app:2", "x": "example.org/y"}
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("b%02d", i)
	}
	for name, tt := range map[string]struct {
		image, ref string   // the image's name, and the one under which it is removed
		from       string   // the name under which boxes got it
		old        bool     // before another image took the name
		boxes      []string // names
		want       string   // what the refusal names; "" for none
	}{
		"unused":               {image: "a", ref: "a:latest"},
		"boxes":                {image: "a", ref: "a", from: "a:latest", boxes: []string{"web", "box_x"}, want: "in use by box box_x, box web: "},
		"many boxes":           {image: "a", ref: "a", from: "a:latest", boxes: many, want: "box b08, box b09, 2 more: "},
		"boxes of another":     {image: "a", ref: "a", from: "b:latest", boxes: []string{"web"}},
		"boxes of an old one":  {image: "a", ref: "a", from: "a:latest", old: true, boxes: []string{"web"}},
		"an alias":             {image: "example.org/app:1", ref: "example.org/app:1", want: "in use by alias short: "},
		"a box and an alias":   {image: "example.org/app:1", ref: "example.org/app:1", from: "example.org/app:1", boxes: []string{"web"}, want: "box web, alias short: "},
		"by its alias":         {image: "example.org/app:1", ref: "short"},
		"the name of an alias": {image: "x", ref: "x:latest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPuller(t, image.Sources{Never: true, Aliases: aliases})
			id := f.imported(t, tt.image, source(t, pack(t, map[string]string{"f": "1"}))).ID
			if tt.old {
				id = "sha256:old"
			}
			for _, box := range tt.boxes {
				f.inUse = append(f.inUse, core.ImageUse{Box: box, Image: core.Image{Ref: tt.from, ID: id}})
			}
			if err := f.Remove(t.Context(), tt.ref, false); tt.want != "" {
				if !fault.Is(err, fault.InvalidState) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("without force: %v, want invalid_state and %q", err, tt.want)
				}
				err = f.Remove(t.Context(), tt.ref, true)
				if err != nil {
					t.Errorf("with force: %v", err)
				}
			} else if err != nil {
				t.Error(err)
			}
			if _, err := f.Inspect(tt.ref); !fault.Is(err, fault.ImageNotFound) {
				t.Errorf("then: %v, want image_not_found", err)
			}
		})
	}
}

// TestRemoveYieldsToABox lets a box appear between the two checks of what is in
// use.
func TestRemoveYieldsToABox(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "x", source(t, pack(t, map[string]string{"f": "1"})))
	layers := f.layers(t)
	looks := 0
	s, err := image.Open(image.Config{Home: f.home, InUse: func() ([]core.ImageUse, error) {
		if looks++; looks == 1 {
			return nil, nil
		}
		return standOn(layers...), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "x", true); err != nil {
		t.Fatal(err)
	}
	if left := f.layers(t); !slices.Equal(left, layers) {
		t.Errorf("layers %v, want %v back", left, layers)
	}
}

func TestWithoutInUseNoLayerGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "x", source(t, pack(t, map[string]string{"f": "1"})))
	s, err := image.Open(image.Config{Home: f.home})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "x", false); err != nil || len(f.layers(t)) != 1 {
		t.Errorf("%v, layers %v", err, f.layers(t))
	}
}

func TestLostLayer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "x", source(t, pack(t, map[string]string{"f": "1"})))
	if err := os.RemoveAll(f.layers(t)[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resolve(t.Context(), "x"); !fault.Is(err, fault.Image) || !strings.Contains(err.Error(), "import it again") {
		t.Errorf("%v, want image_error", err)
	}
}

func TestNextImportSweeps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dir := filepath.Join(f.home, "layers", "tmp-dead")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "x"), 0o700), os.WriteFile(dir+".lock", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	f.imported(t, "x", source(t, pack(t, map[string]string{"f": "1"})))
	if left := f.layers(t); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestSweepLeavesTheLiving imports an image while another import is running.
func TestSweepLeavesTheLiving(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	second := source(t, pack(t, map[string]string{"f": "2"}))
	f.u.before = func() {
		f.u.before = nil
		f.imported(t, "second", second)
	}
	f.imported(t, "first", source(t, pack(t, map[string]string{"f": "1"})))
	if f.read(t, "first", "f") != "1" || f.read(t, "second", "f") != "2" {
		t.Error("an import took another's layer away")
	}
}

func TestCanceledImport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.u.before = func() { cancel() }
	_, err := f.Import(ctx, "x", source(t, pack(t, map[string]string{"f": "1"})), nil)
	if !fault.Is(err, fault.Canceled) || len(f.layers(t)) != 0 {
		t.Errorf("%v, left %v", err, f.layers(t))
	}
}

// TestCanceledWait cancels a wait for a store that another process holds.
func TestCanceledWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dir := filepath.Join(f.home, "layers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := filelock.Exclusive(t.Context(), filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Remove(ctx, "x", false); !fault.Is(err, fault.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

// FuzzArchive imports arbitrary bytes as an image. Nothing is unpacked, because
// the test is about the readers of the formats.
func FuzzArchive(f *testing.F) {
	b := twoLayers(f)
	f.Add(pack(f, b.layout(f)))
	f.Add(pack(f, b.docker(f)))
	f.Add(gz(f, pack(f, b.layout(f))))
	f.Add(pack(f, map[string]string{"oci-layout": "", "index.json": `{"manifests":[{"mediaType":"` + ociIndex + `"}]}`}))
	f.Fuzz(func(t *testing.T, data []byte) {
		home := t.TempDir()
		s, err := image.Open(image.Config{Home: home, Unpacker: refuser{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Import(t.Context(), "x", source(t, data), nil); err == nil {
			t.Error("imported without unpacking")
		} else if fault.Is(err, fault.Internal) {
			t.Error(err)
		}
	})
}

// FuzzDocuments is an image whose manifest and config are anything, with the digests that
// they have.
func FuzzDocuments(f *testing.F) {
	b := twoLayers(f)
	config := marshal(f, b.config)
	f.Add(`{"schemaVersion":2,"config":%s,"layers":[]}`, config)
	f.Add(`{"config":%s,"layers":[{"digest":"sha256:00"}]}`, `{"rootfs":{"diff_ids":["x"]},"config":null}`)
	f.Add(`{"manifests":[]}`, `{"config":{"Env":["=",""],"Healthcheck":{"Test":["NONE"],"Interval":-1}}}`)
	f.Fuzz(func(t *testing.T, manifest, config string) {
		home := t.TempDir()
		s, err := image.Open(image.Config{Home: home, Unpacker: refuser{}})
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"oci-layout": `{"imageLayoutVersion":"1.0.0"}`}
		c := put(files, "application/vnd.oci.image.config.v1+json", config)
		m := put(files, "application/vnd.oci.image.manifest.v1+json", strings.Replace(manifest, "%s", marshal(t, c), 1))
		files["index.json"] = marshal(t, map[string]any{"schemaVersion": 2, "manifests": []any{m}})
		if _, err := s.Import(t.Context(), "x", source(t, pack(t, files)), nil); fault.Is(err, fault.Internal) {
			t.Error(err)
		}
	})
}

type refuser struct{}

func (refuser) Unpack(context.Context, io.Reader, string) error {
	return fault.New(fault.Image, "refused")
}

func (refuser) Flush(context.Context) error { return nil }

func (refuser) Pack(context.Context, string, io.Writer) error { return errors.ErrUnsupported }

func TestPrune(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := twoLayers(t)
	f.imported(t, "used", source(t, pack(t, b.docker(t))))
	f.imported(t, "unused", source(t, pack(t, map[string]string{"f": "1"})))
	f.inUse = standOn(slices.DeleteFunc(f.layers(t), func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "f")); return err == nil })...)
	partial := filepath.Join(f.home, "blobs", "partial-"+digest(nil))
	if err := errors.Join(os.Mkdir(filepath.Dir(partial), 0o700), os.WriteFile(partial, []byte("12345"), 0o600)); err != nil {
		t.Fatal(err)
	}
	done, err := f.Prune(t.Context(), false)
	if err != nil || len(done.Images) != 0 || done.Layers != 0 || done.Bytes != 5 {
		t.Errorf("%+v, %v; want no more than what was fetched in part", done, err)
	}
	done, err = f.Prune(t.Context(), true)
	members.Equal(t, "pruned", members.Of{
		"failure": {err, nil}, "images": {done.Images, []string{"unused:latest"}}, "layers": {done.Layers, 1},
		"1000 bytes or more": {done.Bytes >= 1000, true}, "layers left": {len(f.layers(t)), 2},
	})
}

// TestNoLayerGoesWhileAnImageIsMade removes an image in the middle of the
// import of another one that shares its lower layer.
func TestNoLayerGoesWhileAnImageIsMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := twoLayers(t)
	f.imported(t, "lower", source(t, b.plain[0]))
	f.u.before = sync.OnceFunc(func() {
		if err := f.Remove(t.Context(), "lower", false); err != nil {
			t.Error(err)
		}
	})
	f.imported(t, "both", source(t, pack(t, b.docker(t))))
	if f.read(t, "both", "a") != "lower" {
		t.Error("a layer has gone")
	}
}
