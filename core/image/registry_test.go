package image_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
	"sandbox/test/registry"
)

// TestRealRegistry pulls from Debian's docker-registry.
func TestRealRegistry(t *testing.T) {
	t.Parallel()
	img := registry.Busybox(t)
	id, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	login := func(r *options.Registry) { r.Username, r.Password = registry.User, registry.Password }
	for name, c := range map[string]struct {
		of      registry.Options
		change  func(*options.Registry)
		trust   bool
		problem string
	}{
		"plain":            {registry.Options{}, nil, false, ""},
		"TLS":              {registry.Options{TLS: true}, nil, true, ""},
		"login":            {registry.Options{Login: true}, login, false, ""},
		"TLS and login":    {registry.Options{TLS: true, Login: true}, login, true, ""},
		"not trusted":      {registry.Options{TLS: true}, nil, false, "certificate"},
		"no login":         {registry.Options{Login: true}, nil, false, "docker login"},
		"a wrong password": {registry.Options{Login: true}, func(r *options.Registry) { r.Username, r.Password = registry.User, "x" }, false, "refused the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Start(t, c.of)
			r.Push(t, "team/box:v1", img)
			known := options.Registry{Host: r.Host, Transport: options.TransportHTTP}
			if c.of.TLS {
				known.Transport = options.TransportHTTPS
			}
			if c.change != nil {
				c.change(&known)
			}
			from := image.Sources{Registries: []options.Registry{known}, Timeout: 10 * time.Second}
			if c.trust {
				from.TLS = r.TLS
			}
			f := newPuller(t, from)
			info, err := f.Pull(t.Context(), r.Host+"/team/box:v1", nil)
			switch {
			case c.problem != "":
				if !fault.Is(err, fault.Upstream) || !strings.Contains(err.Error(), c.problem) || !strings.Contains(err.Error(), r.Host) {
					t.Errorf("%v, want %q", err, c.problem)
				}
			case err != nil:
				t.Fatal("needs root: ", err)
			case info.ID != id.String() || len(info.Layers) != 2 || info.User != "user" || info.Name != r.Host+"/team/box:v1":
				t.Errorf("%+v", info)
			case !strings.Contains(f.read(t, "team/box:v1", "etc/passwd"), "user:x:1000"):
				t.Error("no passwd")
			}
			nothingHalf(t, f)
		})
	}
}

// TestDockerConfig reads credentials from docker's own configuration.
func TestDockerConfig(t *testing.T) {
	r := registry.Start(t, registry.Options{Login: true})
	r.Push(t, "box:v1", registry.Busybox(t))
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
	if err := os.Mkdir(filepath.Join(home, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	for auth, problem := range map[string]string{
		`{"auths":{"` + r.Host + `":{"auth":"dXNlcjpzZWNyZXQ="}}}`: "", // user:secret
		`{"auths":{"` + r.Host + `":{"auth":"dXNlcjp4"}}}`:         "refused the credentials",
		`{"auths":{}}`: "docker login",
		`{"auths":`:    "read the credentials",
	} {
		if err := os.WriteFile(filepath.Join(home, ".docker", "config.json"), []byte(auth), 0o600); err != nil {
			t.Fatal(err)
		}
		f := newPuller(t, image.Sources{Keychain: authn.DefaultKeychain, Timeout: 10 * time.Second})
		_, err := f.Pull(t.Context(), r.Host+"/box:v1", nil)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v, want %q", auth, err, problem)
		}
	}
}
