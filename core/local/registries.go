package local

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// registries are the images of a cluster, with short names for some: what their registries
// say of them. It implements [core.Images].
type registries struct {
	aliases map[string]string
	look    func(ctx context.Context, ref string) (core.Image, error)

	mu   sync.Mutex
	seen map[string]sight // at most maxSeen, by reference
}

// sight is what was seen of an image, or why nothing was.
type sight struct {
	image core.Image
	err   error
	at    time.Time
}

const (
	maxSeen = 1000
	// fresh is for how long a tag stands for the image that was seen, and a registry that
	// did not answer is not asked again.
	fresh = time.Minute
	// lookTimeout bounds how much longer a create takes because a registry does not answer.
	lookTimeout = 3 * time.Second
)

// Look returns what an image says of itself at its registry, which is asked once for each
// digest. Errors: those of [image.Store.Look].
func (r *registries) Look(ctx context.Context, ref string) (core.Image, error) {
	if s, known := r.recall(ref); known {
		return s.image, s.err
	}
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	img, err := r.look(limited, ref)
	if ctx.Err() == nil {
		r.note(ref, sight{img, err, time.Now()})
	}
	return img, err
}

func (r *registries) recall(ref string) (sight, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.seen[ref]
	lasts := s.err == nil && strings.Contains(ref, "@")
	return s, known && (lasts || time.Since(s.at) < fresh)
}

func (r *registries) note(ref string, s sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]sight{}
	}
	for other := range r.seen {
		if len(r.seen) < maxSeen {
			break
		}
		delete(r.seen, other) // whichever
	}
	r.seen[ref] = s
}

// Resolve returns the image as the nodes find it. It is the one that Command has read a
// moment ago, if it has read it.
func (r *registries) Resolve(_ context.Context, ref string) (core.Image, error) {
	ref = cmp.Or(r.aliases[ref], ref)
	img := core.Image{Ref: ref}
	if s, known := r.recall(ref); known && s.err == nil {
		img.ID = s.image.ID
	}
	return img, nil
}

// Command asks the registry of the image. Errors: Unsupported (it can't be asked).
func (r *registries) Command(ctx context.Context, ref string) ([]string, error) {
	img, err := r.Look(ctx, cmp.Or(r.aliases[ref], ref))
	return img.Command, fault.Wrap(fault.Unsupported, err, "the command of the image is not known here, since this server could not ask its registry: name the command")
}

// Snapshot is refused.
func (*registries) Snapshot(context.Context, core.SnapshotRequest, func(string) (core.Image, error)) (api.Image, error) {
	return api.Image{}, errElsewhere()
}

// Snapshots returns none.
func (*registries) Snapshots(context.Context) ([]api.SnapshotNode, error) {
	return []api.SnapshotNode{}, nil
}

// Stack is refused.
func (*registries) Stack(string) (api.Image, []string, error) {
	return api.Image{}, nil, errElsewhere()
}

// Remove is refused.
func (*registries) Remove(context.Context, string, bool) error { return errElsewhere() }

// pullSecrets have the credentials with which the nodes pull images. It implements
// [authn.ContextKeychain], whose documents are those of Secrets of the type
// kubernetes.io/dockerconfigjson.
type pullSecrets func(context.Context) ([][]byte, error)

// Resolve returns the credentials for a registry.
func (p pullSecrets) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return p.ResolveContext(context.Background(), target)
}

// ResolveContext returns the credentials for a registry.
func (p pullSecrets) ResolveContext(ctx context.Context, target authn.Resource) (authn.Authenticator, error) {
	documents, err := p(ctx)
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		var config struct {
			Auths map[string]authn.AuthConfig `json:"auths"`
		}
		if json.Unmarshal(document, &config) != nil {
			continue // the kubelet passes over it, too
		}
		for at, auth := range config.Auths {
			if registryOf(at) == target.RegistryStr() {
				return authn.FromConfig(auth), nil
			}
		}
	}
	return authn.Anonymous, nil
}

// registryOf returns the host that a key of such a document is for, as in
// https://index.docker.io/v1/.
func registryOf(key string) string {
	_, rest, found := strings.Cut(key, "://")
	if !found {
		rest = key
	}
	host, _, _ := strings.Cut(rest, "/")
	if host == "docker.io" {
		return name.DefaultRegistry
	}
	return host
}
