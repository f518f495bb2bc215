package local

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/test/registry"
)

// TestRegistries asks a registry that wants a login for images, as an engine of a cluster does.
func TestRegistries(t *testing.T) {
	t.Parallel()
	server := registry.Start(t, registry.Options{Login: true})
	commands := registry.Commands(t)
	server.Push(t, "app", commands["both"])
	config, err := json.Marshal(map[string]any{"auths": map[string]any{
		"https://another.example": map[string]any{}, "http://" + server.Host + "/v1/": map[string]any{"username": registry.User, "password": registry.Password},
	}})
	if err != nil {
		t.Fatal(err)
	}
	open := func(documents ...string) *registries {
		logins := pullSecrets(func(context.Context) (all [][]byte, err error) {
			for _, d := range documents {
				all = append(all, []byte(d))
			}
			return all, nil
		})
		store, err := image.Open(image.Config{Home: t.TempDir(), Unpacker: elsewhere{}, Sources: image.Sources{Keychain: logins}})
		if err != nil {
			t.Fatal(err)
		}
		return &registries{aliases: map[string]string{"short": server.Host + "/app"}, look: store.Look}
	}
	all := open("nonsense", string(config))
	before, err := all.Resolve(t.Context(), "short")
	if err != nil || before.Ref != server.Host+"/app" || before.ID != "" {
		t.Errorf("before anybody has asked: %+v, %v", before, err)
	}
	cmd, err := all.Command(t.Context(), "short")
	if err != nil || !slices.Equal(cmd, []string{"/bin/sh", "-c", "echo from Entrypoint ${0#/bin/sh} $*", "and", "Cmd"}) {
		t.Errorf("command %q, %v", cmd, err)
	}
	digest, err := commands["both"].Digest()
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := all.Resolve(t.Context(), server.Host+"/app")
	if want := server.Host + "/app@" + digest.String(); err != nil || pinned.ID != want {
		t.Errorf("the image is %q, %v, want %q", pinned.ID, err, want)
	}
	img, err := all.Look(t.Context(), pinned.ID)
	if err != nil || img.User != "user" || img.WorkingDir != "/home/user" || img.ID != pinned.ID {
		t.Errorf("by its digest: %+v, %v", img, err)
	}
	for name, r := range map[string]*registries{"no login": open(), "a login for another": open(`{"auths": {"another.example": {"username": "user", "password": "secret"}}}`)} {
		if _, err := r.Command(t.Context(), "short"); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "name the command") {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Close()
	if again, err := all.Look(t.Context(), pinned.ID); err != nil || again.User != img.User {
		t.Errorf("without its registry: %+v, %v", again, err)
	}
	if _, err := open(string(config)).Command(t.Context(), "short"); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without the registry: %v", err)
	}
}

// TestRegistriesBounded looks at more images than are kept in memory.
func TestRegistriesBounded(t *testing.T) {
	t.Parallel()
	asked := 0
	r := &registries{look: func(_ context.Context, ref string) (core.Image, error) {
		asked++
		if ref == "bad@" {
			return core.Image{}, errors.New("gone")
		}
		return core.Image{ID: ref}, nil
	}}
	for range 2 { // the second time nobody is asked
		for _, ref := range []string{"bad@", "one@1"} {
			if img, err := r.Look(t.Context(), ref); (err == nil) != (img.ID == ref) {
				t.Errorf("%s: %+v, %v", ref, img, err)
			}
		}
	}
	for i := range 2 * maxSeen {
		if _, err := r.Look(t.Context(), "many@"+strconv.Itoa(i)); err != nil {
			t.Error(err)
		}
	}
	if asked != 2+2*maxSeen || len(r.seen) > maxSeen {
		t.Errorf("asked %d times, and %d are kept", asked, len(r.seen))
	}
}
