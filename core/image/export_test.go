package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/image/layer"
	"sandbox/test/boxes"
)

// exported returns the archive of an image, or fails the test.
func (f *fixture) exported(t testing.TB, ref string, how api.Compression) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Export(t.Context(), ref, &b, image.ExportOptions{Compression: how}); err != nil {
		t.Fatal("needs root: ", err)
	}
	return b.Bytes()
}

// filesOf returns the files of a tar.
func filesOf(t testing.TB, data []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		text, readErr := io.ReadAll(tr)
		if err = errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(text)
		}
	}
}

// TestExport exports an image and imports it elsewhere, with each compression.
func TestExport(t *testing.T) {
	t.Parallel()
	for _, how := range append(api.Compressions(), "") {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			f, g := newFixture(t), newFixture(t)
			from := source(t, pack(t, twoLayers(t).layout(t)))
			f.imported(t, "team/app:1", from)
			g.imported(t, "team/app:1", from)
			data := f.exported(t, "team/app:1", how)
			if !bytes.Equal(f.exported(t, "team/app:1", how), data) || !bytes.Equal(g.exported(t, "team/app:1", how), data) {
				t.Error("the same image gives other bytes the next time, or elsewhere")
			}
			was, err := f.Inspect("team/app:1")
			if err != nil {
				t.Fatal(err)
			}
			h := newFixture(t)
			got := h.imported(t, "team/app:1", source(t, data))
			if h.read(t, "team/app:1", "both") != "upper" || len(got.Layers) != 2 {
				t.Errorf("layers %v", got.Layers)
			}
			if !bytes.Equal(h.exported(t, "team/app:1", how), data) {
				t.Error("an image that was exported gives other bytes after its import")
			}
			got.ID, got.Layers, got.Size = was.ID, was.Layers, was.Size // those of other tars
			if marshal(t, got) != marshal(t, was) {
				t.Errorf("%+v, want %+v", got, was)
			}
			f.nothingOpen(t)
		})
	}
}

// nothingOpen fails the test if an export has left a file in the store, or has it open. A
// lock whose wait was given up is open until its holder has let go.
func (f *fixture) nothingOpen(t testing.TB) {
	t.Helper()
	nothingHalf(t, f)
	boxes.Await(t, "closed files of the store", func() bool {
		links, _ := filepath.Glob("/proc/self/fd/*")
		return !slices.ContainsFunc(links, func(link string) bool {
			to, _ := os.Readlink(link)
			return strings.HasPrefix(to, f.home+"/")
		})
	})
}

// TestExportDocuments reads what an archive says of its image.
func TestExportDocuments(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "team/app:1", source(t, pack(t, twoLayers(t).layout(t))))
	files := filesOf(t, f.exported(t, "team/app:1", api.CompressGzip))
	var docker []struct {
		Config           string
		RepoTags, Layers []string
	}
	var config struct {
		Architecture, OS string
		Created          time.Time
		Config           struct {
			Env, Entrypoint, Cmd []string
			User, WorkingDir     string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
		History []any
	}
	if err := json.Unmarshal([]byte(files["manifest.json"]), &docker); err != nil || len(docker) != 1 {
		t.Fatal(err, docker)
	}
	if err := json.Unmarshal([]byte(files[docker[0].Config]), &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(docker[0].RepoTags, []string{"team/app:1"}) || len(docker[0].Layers) != 2 || !strings.Contains(files["index.json"], `"org.opencontainers.image.ref.name":"team/app:1"`) {
		t.Errorf("%s, %s", files["manifest.json"], files["index.json"])
	}
	if config.OS != "linux" || config.Created.Year() != 2020 || config.Config.User != "1000" || config.Config.WorkingDir != "/w" ||
		!slices.Equal(config.Config.Env, []string{"A=b"}) || !slices.Equal(config.Config.Entrypoint, []string{"/e"}) || !slices.Equal(config.Config.Cmd, []string{"c"}) ||
		len(config.RootFS.DiffIDs) != 2 || len(config.History) != 2 {
		t.Errorf("config %+v", config)
	}
	for _, name := range []string{"oci-layout", "index.json"} { // what is left is an archive of docker save
		delete(files, name)
	}
	g := newFixture(t)
	again := g.imported(t, "x", source(t, pack(t, files)))
	if !reflect.DeepEqual(again.HealthCheck, twoLayersHealth) || again.StopSignal != "SIGQUIT" {
		t.Errorf("health check %+v, stop signal %q", again.HealthCheck, again.StopSignal)
	}
	if again.Labels["a"] != "b" || !slices.Equal(again.ExposedPorts, []string{"80/tcp"}) {
		t.Errorf("labels %v, exposed ports %v", again.Labels, again.ExposedPorts)
	}
	if got := g.read(t, "x", "both"); got != "upper" {
		t.Errorf("both = %q", got)
	}
}

// TestImportOfDamagedExport changes each file of an archive.
func TestImportOfDamagedExport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "x", source(t, pack(t, twoLayers(t).layout(t))))
	files := filesOf(t, f.exported(t, "x", api.CompressZstd))
	for name, text := range files {
		if name == "manifest.json" || name == "oci-layout" {
			continue // not read, where there is an index
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			damaged := maps.Clone(files)
			at := len(text) / 2
			damaged[name] = text[:at] + string(text[at]^1) + text[at+1:]
			g := newFixture(t)
			if _, err := g.Import(t.Context(), "x", source(t, pack(t, damaged)), nil); !fault.Is(err, fault.Image) {
				t.Errorf("%v, want image_error", err)
			}
			g.nothing(t)
		})
	}
}

// boxLayer adds a layer to an image that a box with the ids from base has made,
// and that replaces a file by its owner.
func (f *fixture) boxLayer(t testing.TB, ref string, base int) {
	t.Helper()
	const name = "5eed"
	dir := filepath.Join(f.home, "layers", name)
	file := filepath.Join(dir, "both")
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(file, []byte("box"), 0o640), unix.Mknod(filepath.Join(dir, "a"), unix.S_IFCHR, 0),
		os.Chown(file, base+1000, base+100), os.Chown(dir, base, base), layer.MarkNew(dir),
		os.WriteFile(dir+".json", []byte(`{"size":3}`), 0o600))
	if err != nil {
		t.Fatal("needs root: ", err)
	}
	records, _ := filepath.Glob(filepath.Join(f.home, "images", "*.json"))
	for _, record := range records {
		var info api.Image
		data, _ := os.ReadFile(record)
		if err := json.Unmarshal(data, &info); err != nil {
			t.Fatal(err)
		}
		if info.Name == ref {
			info.Layers = append(info.Layers, "snapshot:"+name)
			if err := os.WriteFile(record, []byte(marshal(t, info)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestExportOfBox exports images of a layer that boxes with other ids have made
// alike.
func TestExportOfBox(t *testing.T) {
	t.Parallel()
	var archives [][]byte
	from := source(t, pack(t, twoLayers(t).layout(t)))
	at := []unix.Timespec{{Sec: 1e9, Nsec: 7}, {Sec: 1e9, Nsec: 7}}
	for _, base := range []int{1 << 16, 9 << 16} {
		f := newFixture(t)
		f.imported(t, "x:latest", from)
		f.boxLayer(t, "x:latest", base)
		for _, name := range []string{"both", "."} {
			if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(f.home, "layers/5eed", name), at, 0); err != nil {
				t.Fatal(err)
			}
		}
		archives = append(archives, f.exported(t, "x", api.CompressNone))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same disk gives other bytes in another range of ids")
	}
	g := newFixture(t)
	img := g.imported(t, "x", source(t, archives[0]))
	if len(img.Layers) != 3 || g.read(t, "x", "both") != "box" {
		t.Errorf("layers %v", img.Layers)
	}
	var st unix.Stat_t
	file := filepath.Join(g.home, "layers", strings.TrimPrefix(img.Layers[2], "sha256:"), "both")
	if err := unix.Lstat(file, &st); err != nil || st.Uid != 1000 || st.Gid != 100 || st.Mode&0o777 != 0o640 || st.Mtim.Nsec != 7 {
		t.Errorf("%v: %+v", err, st)
	}
}

// TestExportFails has exports fail in each way.
func TestExportFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "x", source(t, pack(t, twoLayers(t).layout(t))))
	f.imported(t, "lost", source(t, pack(t, map[string]string{"f": "lost"})))
	lost, err := f.Inspect("lost")
	if err == nil {
		err = os.RemoveAll(filepath.Join(f.home, "layers", strings.TrimPrefix(lost.Layers[0], "sha256:")))
	}
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	broken := fault.New(fault.Upstream, "broken")
	for name, c := range map[string]struct {
		ctx  context.Context
		ref  string
		how  api.Compression
		w    io.Writer
		want fault.Kind
	}{
		"no image":        {t.Context(), "y", "", io.Discard, fault.ImageNotFound},
		"no reference":    {t.Context(), "../x", "", io.Discard, fault.InvalidArgument},
		"no compression":  {t.Context(), "x", "xz", io.Discard, fault.InvalidArgument},
		"a layer is lost": {t.Context(), "lost", "", io.Discard, fault.Image},
		"it was canceled": {ended, "x", "", io.Discard, fault.Canceled},
		"nobody reads it": {t.Context(), "x", "", failing{broken}, fault.Upstream},
	} {
		t.Run(name, func(t *testing.T) {
			if err := f.Export(c.ctx, c.ref, c.w, image.ExportOptions{Compression: c.how}); !fault.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			f.nothingOpen(t)
		})
	}
}

// failing is a writer that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestExportKeepsLayers removes an image while it is exported.
func TestExportKeepsLayers(t *testing.T) {
	t.Parallel()
	f, g := newFixture(t), newFixture(t)
	f.imported(t, "x", source(t, pack(t, twoLayers(t).layout(t))))
	var b bytes.Buffer
	removed := onWrite{w: &b, do: func() error { return f.Remove(t.Context(), "x", true) }}
	if err := f.Export(t.Context(), "x", &removed, image.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	g.imported(t, "x", source(t, b.Bytes()))
	if _, err := f.Prune(t.Context(), false); err != nil || len(f.layers(t)) != 0 {
		t.Errorf("Prune: %v, left %v", err, f.layers(t))
	}
}

// onWrite calls do at its first write.
type onWrite struct {
	w  io.Writer
	do func() error
}

func (o *onWrite) Write(p []byte) (int, error) {
	if o.do != nil {
		if err := o.do(); err != nil {
			return 0, err
		}
		o.do = nil
	}
	return o.w.Write(p)
}

// TestExportProgress is told of each layer.
func TestExportProgress(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.imported(t, "x", source(t, pack(t, twoLayers(t).layout(t))))
	stages := map[api.ImageStage]int{}
	err := f.Export(t.Context(), "x", io.Discard, image.ExportOptions{Progress: func(p image.Progress) {
		if p.Layers == 2 && p.Done > 0 {
			stages[p.Stage] |= p.Layer
		}
	}})
	if err != nil || stages[api.LayerPacking] != 3 || stages[api.LayerDone] != 3 {
		t.Errorf("%v: stages %v", err, stages)
	}
}
