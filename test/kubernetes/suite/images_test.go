//go:build kubernetes

package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/image"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/test/registry"
)

// withRegistry starts a registry that has the image of the suite of engines under a name, and
// has an engine ask it. Both end with the test.
func withRegistry(t testing.TB) (ref string, server *registry.Registry, ask func(*kubernetes.Config)) {
	t.Helper()
	server = registry.Start(t, registry.Options{})
	server.Push(t, "enginetest", imageOf(t, "localhost/enginetest:1", func(*v1.Config) {}))
	store, err := image.Open(image.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return server.Host + "/enginetest:latest", server, func(c *kubernetes.Config) { c.PullPolicy, c.Look = "IfNotPresent", store.Look }
}

// imageOf returns an image that the node has, changed: it is another one then.
func imageOf(t testing.TB, ref string, change func(*v1.Config)) v1.Image {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if out, err := exec.Command("ctr", "--namespace", "k8s.io", "images", "export", file, ref).CombinedOutput(); err != nil {
		t.Fatalf("ctr: %v: %s", err, out)
	}
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	own := config.Config
	own.Labels = map[string]string{"of": ids.Box.New()}
	change(&own)
	if img, err = mutate.Config(img, own); err != nil {
		t.Fatal(err)
	}
	return img
}

// TestImageUser has boxes run as the user that their image names, whichever server they are
// asked for at, and also those that are made of pods that were ready, and started again.
func TestImageUser(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ref, _, ask := withRegistry(t)
	e, blind := open(t, ns, ask, withDisks, func(c *kubernetes.Config) { c.Pool = 1 }), open(t, ns, withDisks)
	own := func(o *options.Box) { o.Image = ref }
	for name, c := range map[string]struct {
		change func(*options.Box)
		want   string
	}{
		"the image's":     {own, "65534 /usr\n"},
		"the box's":       {func(o *options.Box) { o.Image, o.User, o.WorkingDir = ref, "1234", "/tmp" }, "1234 /tmp\n"},
		"of no registry":  {func(o *options.Box) { o.Image = "localhost/enginetest:1" }, "0 /usr\n"},
		"with no disk":    {func(o *options.Box) { o.Image, o.AutoRemove = ref, true }, "65534 /usr\n"},
		"of a ready pod":  {func(o *options.Box) { o.Image, o.AutoRemove = ref, true }, "65534 /usr\n"},
		"root by the box": {func(o *options.Box) { o.Image, o.User = ref, "root" }, "0 /usr\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "of a ready pod" {
				ready(t, ns)
			}
			box := made(t, e, c.change)
			in(t, e, box.ID, "echo $(id -u) $(pwd)", c.want)
			status(t, blind, box.ID, "running")
			in(t, blind, box.ID, "echo $(id -u) $(pwd)", c.want)
			if !box.Options.AutoRemove && name == "the image's" {
				stopped(t, e, box.ID)
				status(t, blind, box.ID, "stopped")
				started(t, blind, box.ID)
				in(t, blind, box.ID, "echo $(id -u) $(pwd)", c.want)
			}
			if err := e.Remove(t.Context(), box.ID, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// ready makes boxes until a pod is ready for the next one.
func ready(t *testing.T, ns string) {
	t.Helper()
	for range 600 {
		if strings.Contains(kubectl(t, "get", "pods", "--namespace", ns, "--selector=sandbox/spare", "--output=jsonpath={.items[*].status.phase}"), "Running") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("no pod is ready")
}

// TestImagePinned makes a box of the image that was read at its registry, and not of the one
// that the node has of that name, nor of a pod that is ready with that.
func TestImagePinned(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ref, server, ask := withRegistry(t)
	e := open(t, ns, ask, func(c *kubernetes.Config) { c.Pool = 1 })
	box := made(t, e, func(o *options.Box) { o.Image = ref })
	ready(t, ns)
	server.Push(t, "enginetest", imageOf(t, "localhost/enginetest:1", func(c *v1.Config) { c.User, c.WorkingDir = "4321", "/bin" }))
	store, err := image.Open(image.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	now := must(store.Look(t.Context(), ref))(t)
	o := small(func(o *options.Box) { o.Image = ref })
	second, err := e.Create(t.Context(), core.CreateRequest{ID: ids.Box.New(), Options: o, Image: now})
	if err != nil {
		t.Fatal(err)
	}
	in(t, e, second.ID, "echo $(id -u) $(pwd)", "4321 /bin\n")
	in(t, e, box.ID, "echo $(id -u) $(pwd)", "65534 /usr\n")
	if second.Options.Image != ref || second.ImageID != now.ID {
		t.Errorf("the box tells %s, %s, want %s, %s", second.Options.Image, second.ImageID, ref, now.ID)
	}
}

// TestImageCommand runs the command of an image whose registry wants a login, which nodes and
// program have from one Secret.
func TestImageCommand(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	server := registry.Start(t, registry.Options{Login: true})
	server.Push(t, "app", imageOf(t, "localhost/busybox:1", func(c *v1.Config) {
		c.User, c.Entrypoint, c.Cmd = "nobody", []string{"/bin/sh", "-c", "echo $0 $* $(id -u)"}, []string{"and", "Cmd"}
	}))
	kubectl(t, "create", "secret", "docker-registry", "login", "--namespace", ns, "--docker-server="+server.Host, "--docker-username="+registry.User, "--docker-password="+registry.Password)
	home := t.TempDir()
	settings := fmt.Sprintf("[kubernetes]\nkubeconfig = %q\nnamespace = %q\nprogram = %q\npull_policy = \"IfNotPresent\"\npull_secrets = [\"none-such\", \"login\"]\n", os.Getenv("KUBECONFIG"), ns, program)
	check(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600))
	host, err := local.Open(local.Config{Home: home, Engine: local.EngineKubernetes})
	check(t, err)
	t.Cleanup(func() { check(t, host.Close(context.Background())) })
	ref := server.Host + "/app"
	cmd, err := host.Command(t.Context(), ref)
	check(t, err)
	box, _, err := host.Create(t.Context(), small(func(o *options.Box) { o.Image = ref }))
	check(t, err)
	if out := run(t, box, cmd[0], cmd[1:]...); out != "and Cmd 65534\n" {
		t.Errorf("it says %q", out)
	}
	_, err = host.Command(t.Context(), "localhost/busybox:1")
	says(t, err, fault.Unsupported, "name the command")
	check(t, box.Remove(t.Context(), true))
	empty(t, ns)
}
