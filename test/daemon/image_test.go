package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/registry"
)

// newClient returns a client of the server.
func (p *program) newClient() *client.Client {
	p.t.Helper()
	c, err := client.New(client.Options{URL: "unix://" + filepath.Join(p.home, "sandbox.sock")})
	must(p.t, err)
	p.t.Cleanup(c.Close)
	return c
}

// archive returns what docker save would write of an image of busybox.
func archive(t *testing.T) []byte {
	t.Helper()
	var tar bytes.Buffer
	must(t, tarball.Write(name.MustParseReference("busybox"), registry.Commands(t)["both"], &tar))
	return tar.Bytes()
}

// TestImages pulls, imports, lists and inspects images through the Go client, and
// runs what they have of a command of their own.
func TestImages(t *testing.T) {
	t.Parallel()
	r := registry.Start(t, registry.Options{})
	r.Push(t, "team/box:v1", registry.Commands(t)["cmd"])
	p := serve(t)
	c := p.newClient()
	ref := r.Host + "/team/box:v1"
	done := map[int]bool{}
	pulled, err := c.Pull(t.Context(), ref, func(p api.ImageProgress) {
		if p.Stage == api.LayerDone && p.Layers == 2 {
			done[p.Layer] = true
		}
	})
	if err != nil || pulled.Name != ref || pulled.Digest == "" || !done[1] || !done[2] {
		t.Errorf("pulled %+v, %v; done %v", pulled, err, done)
	}
	imported, err := c.ImportImage(t.Context(), "mine:1", bytes.NewReader(archive(t)))
	if err != nil || imported.Name != "mine:1" || !slices.Equal(imported.Cmd, []string{"and", "Cmd"}) {
		t.Errorf("imported %+v, %v", imported, err)
	}
	all, err := c.Images(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != ref || all[1].Name != "mine:1" {
		t.Errorf("listed %+v, %v", all, err)
	}
	for _, ref := range []string{ref, "mine:1"} {
		if img, err := c.Image(t.Context(), ref); err != nil || img.Name != ref {
			t.Errorf("%s: %+v, %v", ref, img, err)
		}
	}
	o := options.Defaults()
	o.Image, o.Network = "mine:1", options.NetworkNone
	if out, err := c.Run(t.Context(), client.RunRequest{Box: o}); err != nil || out.Stdout != "from Entrypoint and Cmd\n" {
		t.Errorf("run: %+v, %v", out, err)
	}
	if _, err := c.PullMissing(t.Context(), "mine:1", nil); err != nil {
		t.Errorf("an image that is there: %v", err)
	}
}

// TestExportedImages exports an image through the Go client, imports it at another
// daemon, and pushes it to a registry.
func TestExportedImages(t *testing.T) {
	t.Parallel()
	r := registry.Start(t, registry.Options{})
	p, q := serve(t), serve(t)
	c, d := p.newClient(), q.newClient()
	_, err := c.ImportImage(t.Context(), "mine:1", bytes.NewReader(archive(t)))
	must(t, err)
	tar, err := c.ExportImage(t.Context(), "mine:1", "")
	must(t, err)
	img, err := d.ImportImage(t.Context(), "mine:1", tar)
	must(t, errors.Join(err, tar.Close()))
	for _, on := range []struct {
		c    *client.Client
		want string
	}{{c, "sha256:"}, {d, img.ID}} {
		done := map[api.ImageStage]int{}
		to := r.Host + "/team/mine:1"
		pushed, err := on.c.PushImage(t.Context(), client.Push{Reference: "mine:1", As: to}, func(p api.ImageProgress) { done[p.Stage] |= p.Layer })
		if err != nil || pushed.Reference != to || done[api.LayerDone] != 3 {
			t.Errorf("pushed %+v, %v; stages %v", pushed, err, done)
		}
		pulled, err := on.c.Pull(t.Context(), to, nil)
		if err != nil || pulled.Digest != pushed.Digest || !strings.HasPrefix(pulled.ID, on.want) {
			t.Errorf("pulled %+v, %v, want %s", pulled, err, on.want)
		}
	}
	o := options.Defaults()
	o.Image, o.Network = "mine:1", options.NetworkNone
	if out, err := d.Run(t.Context(), client.RunRequest{Box: o}); err != nil || out.Stdout != "from Entrypoint and Cmd\n" {
		t.Errorf("run: %+v, %v", out, err)
	}
	for _, how := range []api.Compression{"xz", "ZSTD"} {
		if _, err := c.ExportImage(t.Context(), "mine:1", how); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("%s: %v", how, err)
		}
	}
	if _, err := c.ExportImage(t.Context(), "nothing", ""); !fault.Is(err, fault.ImageNotFound) {
		t.Errorf("no image: %v", err)
	}
	if _, err := c.PushImage(t.Context(), client.Push{Reference: "mine:1", As: "127.0.0.1:1/x"}, nil); !fault.Is(err, fault.Upstream) {
		t.Errorf("no registry: %v", err)
	}
}

// TestExportThatIsCutOff has an export fail behind its first layer, and one whose
// client goes.
func TestExportThatIsCutOff(t *testing.T) {
	t.Parallel()
	p := serve(t)
	c := p.newClient()
	img, err := c.ImportImage(t.Context(), "mine:1", bytes.NewReader(archive(t)))
	must(t, err)
	last := filepath.Join(p.home, "layers", strings.TrimPrefix(img.Layers[1], "sha256:"))
	must(t, os.WriteFile(filepath.Join(last, ".wh.name"), nil, 0o600)) // which no image can have
	tar, err := c.ExportImage(t.Context(), "mine:1", "")
	must(t, err)
	if _, err := io.Copy(io.Discard, tar); err == nil {
		t.Error("a reply that was broken off was read to an end")
	}
	must(t, tar.Close())
	ctx, hangUp := context.WithCancel(t.Context())
	tar, err = c.ExportImage(ctx, "mine:1", api.CompressNone)
	must(t, err)
	hangUp()
	_ = tar.Close()
	must(t, c.RemoveImage(t.Context(), "mine:1", false))
}

// TestRemoveImage wants an image that a box was made from to go by force alone,
// and the box to keep its files.
func TestRemoveImage(t *testing.T) {
	t.Parallel()
	p := serve(t)
	c := p.newClient()
	_, err := c.ImportImage(t.Context(), "team/mine:1", bytes.NewReader(archive(t)))
	must(t, err)
	o := options.Defaults()
	o.Name, o.Image, o.Network, o.AutoRemove = "user-of-it", "team/mine:1", options.NetworkNone, false
	_, err = c.CreateBox(t.Context(), o)
	must(t, err)
	if err := c.RemoveImage(t.Context(), "team/mine:1", false); !fault.Is(err, fault.InvalidState) || !strings.Contains(err.Error(), "user-of-it") {
		t.Errorf("an image in use: %v, want invalid_state that names the box", err)
	}
	must(t, c.RemoveImage(t.Context(), "team/mine:1", true))
	if _, last := p.events(p.sh("/v1/boxes/user-of-it", "ls /bin/sh"), 0).rest(); last.data["exit_code"] != 0. {
		t.Errorf("the box has lost its files: %v", last)
	}
	if err := c.RemoveImage(t.Context(), "team/mine:1", true); !fault.Is(err, fault.ImageNotFound) {
		t.Errorf("an image that is gone: %v", err)
	}
	p.ask("DELETE", "/v1/images/team/mine:1?force=2", nil).want(t, 422, "invalid_argument")
}

// TestImagePages walks the list page by page.
func TestImagePages(t *testing.T) {
	t.Parallel()
	p := serve(t)
	tar := archive(t)
	for _, name := range []string{"c", "a", "b"} {
		_, err := p.newClient().ImportImage(t.Context(), name, bytes.NewReader(tar))
		must(t, err)
	}
	var names []string
	for token := ""; ; {
		var page struct {
			Images []api.Image
			Next   *string `json:"next_page_token"`
		}
		must(t, json.Unmarshal(p.ask("GET", "/v1/images?page_size=2&page_token="+token, nil).body, &page))
		for _, img := range page.Images {
			names = append(names, img.Name)
		}
		if page.Next == nil {
			break
		}
		token = *page.Next
	}
	if want := []string{"a:latest", "b:latest", "c:latest"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	p.ask("GET", "/v1/images?page_size=0", nil).want(t, 422, "invalid_argument")
	p.ask("GET", "/v1/images?page_token=x", nil).want(t, 422, "invalid_argument")
}

// TestPullsAtOnce has many clients pull one image: each gets it, and its layers
// are there once.
func TestPullsAtOnce(t *testing.T) {
	t.Parallel()
	r := registry.Start(t, registry.Options{})
	r.Push(t, "box:v1", registry.Busybox(t))
	p := serve(t)
	c := p.newClient()
	var pulling sync.WaitGroup
	for range 8 {
		pulling.Go(func() {
			if img, err := c.Pull(t.Context(), r.Host+"/box:v1", nil); err != nil || len(img.Layers) != 2 {
				t.Errorf("%+v, %v", img, err)
			}
		})
	}
	pulling.Wait()
	if left := p.files("layers"); len(left) != 4 { // two layers and their records
		t.Errorf("the layers are %q", left)
	}
}

// TestBadPulls wants each failure with its code, as a status and as the last event
// of a stream.
func TestBadPulls(t *testing.T) {
	t.Parallel()
	r := registry.Start(t, registry.Options{})
	locked := registry.Start(t, registry.Options{Login: true})
	p := serve(t)
	c := p.newClient()
	for ref, kind := range map[string]fault.Kind{
		r.Host + "/nothing:v1": fault.ImageNotFound, locked.Host + "/box:v1": fault.Upstream, "127.0.0.1:1/box": fault.Upstream, "A B": fault.InvalidArgument,
	} {
		if _, err := c.Pull(t.Context(), ref, nil); !fault.Is(err, kind) {
			t.Errorf("%s: %v, want %s", ref, err, kind)
		}
		p.ask("POST", "/v1/images:pull", map[string]any{"reference": ref}).want(t, kind.Row().HTTP, kind.String())
	}
	m := p.ask("POST", "/v1/images:pull", map[string]any{"x": 1, "if_missing": "yes"}).want(t, 400, "malformed")
	if got := fieldsOf(m); !slices.Equal(got, []string{"if_missing", "x", "reference"}) {
		t.Errorf("fields %q", got)
	}
	p.ask("POST", "/v1/images:pull", nil).want(t, 400, "malformed")
	p.ask("GET", "/v1/images/nothing", nil).want(t, 404, "image_not_found")
	p.ask("GET", "/v1/images/"+r.Host+"/nothing:v1", nil).want(t, 404, "image_not_found")
	p.ask("GET", "/v1/images/a%2Fb", nil).want(t, 404, "image_not_found")
	p.ask("GET", "/v1/images/", nil).want(t, 422, "invalid_argument")
	p.ask("POST", "/v1/images:burn", nil).want(t, 404, "not_found")
	p.ask("PUT", "/v1/images:pull", nil).want(t, 405, "method_not_allowed")
	must(t, os.WriteFile(filepath.Join(p.home, "config.toml"), []byte("pull = \"never\"\n"), 0o600))
	p.kill()
	p.start()
	p.ask("POST", "/v1/images:pull", map[string]any{"reference": r.Host + "/box"}).want(t, 403, "permission_denied")
	p.ask("POST", "/v1/images:pull", map[string]any{"reference": r.Host + "/box", "if_missing": true}).want(t, 404, "image_not_found")
}

// fieldsOf returns the members that a failure names, sorted but for those that are
// missing.
func fieldsOf(m map[string]any) (names []string) {
	e, _ := m["error"].(map[string]any)
	list, _ := e["fields"].([]any)
	for _, f := range list {
		name, _ := f.(map[string]any)["field"].(string)
		names = append(names, name)
	}
	return names
}

// TestBadImports wants what is no image to be refused, and nothing to be left of
// it, nor of an upload that breaks off.
func TestBadImports(t *testing.T) {
	t.Parallel()
	p := serve(t)
	c := p.newClient()
	tar := archive(t)
	for what, tt := range map[string]struct {
		name, body string
		kind       fault.Kind
	}{
		"no tar": {"a", "this is no tar", fault.Image}, "nothing": {"a", "", fault.Image}, "half a tar": {"a", string(tar[:len(tar)/2]), fault.Image},
		"a bad name": {"A B", string(tar), fault.InvalidArgument}, "no name": {"", string(tar), fault.InvalidArgument},
	} {
		if _, err := c.ImportImage(t.Context(), tt.name, strings.NewReader(tt.body)); !fault.Is(err, tt.kind) {
			t.Errorf("%s: %v, want %s", what, err, tt.kind)
		}
	}
	p.ask("POST", "/v1/images:import", nil).want(t, 422, "invalid_argument")
	ctx, cut := context.WithCancel(t.Context())
	begun, body := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := c.ImportImage(ctx, "a", begun)
		sent <- err
	}()
	_, err := body.Write(tar[:len(tar)/2])
	must(t, err)
	cut()
	must(t, body.CloseWithError(io.ErrClosedPipe)) // the client may wait for the content
	if err := <-sent; err == nil {
		t.Error("an upload that broke off succeeded")
	}
	for p.holds("layers") { // until the server has noticed
	}
	if left := append(p.files("layers"), p.files("images")...); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

// holds tells whether the server has a file open in a directory of the home.
func (p *program) holds(dir string) bool {
	p.t.Helper()
	fds := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "fd")
	entries, err := os.ReadDir(fds)
	must(p.t, err)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		to, _ := os.Readlink(filepath.Join(fds, e.Name())) // it may be closed by now
		return strings.HasPrefix(to, filepath.Join(p.home, dir)+"/")
	})
}

// files lists what is in a directory of the home, but locks.
func (p *program) files(dir string) (names []string) {
	p.t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.home, dir))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "lock") && !strings.HasPrefix(e.Name(), "adding") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestImportTakesNoMemory imports a large tar: it goes to the disk as it comes.
func TestImportTakesNoMemory(t *testing.T) {
	t.Parallel()
	p := serve(t)
	before := p.rss(t)
	const size = 256 << 20
	if _, err := p.newClient().ImportImage(t.Context(), "a", io.LimitReader(rubbish{}, size)); !fault.Is(err, fault.Image) {
		t.Errorf("rubbish: %v", err)
	}
	if grown := p.rss(t) - before; grown > size/4 {
		t.Errorf("the server has grown by %d MiB", grown>>20)
	}
}

// rubbish is no tar.
type rubbish struct{}

func (rubbish) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestPullStream wants the events of a pull as the contract has them.
func TestPullStream(t *testing.T) {
	t.Parallel()
	r := registry.Start(t, registry.Options{})
	r.Push(t, "box:v1", registry.Busybox(t))
	p := serve(t)
	for ref, last := range map[string]string{"/box:v1": "image", "/nothing": "error"} {
		doc := strings.NewReader(`{"reference":"` + r.Host + ref + `"}`)
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://box/v1/images:pull", doc)
		must(t, err)
		req.Header.Set("Accept", "text/event-stream")
		a := p.send(req)
		if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %d %s", ref, a.status, a.header)
		}
		events := strings.Split(strings.TrimSuffix(string(a.body), "\n\n"), "\n\n")
		for i, event := range events {
			kind := "event: progress\ndata: {\"layer\":"
			if i == len(events)-1 {
				kind = "event: " + last + "\ndata: {"
			}
			if !strings.HasPrefix(event, kind) {
				t.Errorf("%s: event %d is %q, want %q", ref, i, event, kind)
			}
		}
	}
}
