package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// maxManifest bounds a manifest or index from a registry, in bytes. Registries
// have the same limit.
const maxManifest = 4 << 20

// Sources says where images are pulled from. The zero value pulls from
// docker.io and from the registries that references name, without credentials.
type Sources struct {
	// Registries are searched for short names, in order, before docker.io.
	// They also say how to reach those hosts and how to log in.
	Registries []options.Registry
	// Keychain has the credentials for other hosts; nil means none.
	Keychain authn.Keychain
	// Proxy is the Proxy of [http.Transport]; nil means none.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS has the certificates to trust; nil means those of the host.
	TLS *tls.Config
	// Aliases maps short names to references. If an image was
	// imported under such a name, the name stands for that image instead.
	Aliases map[string]string
	// Never stops Get and Resolve from pulling: they only find images that
	// are in the store. Pull still pulls.
	Never bool
	// Timeout is how long a registry may be silent; 0 means 30 s.
	Timeout time.Duration
}

// plain reports whether a registry may be reached without TLS: if the
// configuration says so, or if it is on this host's loopback.
func (s Sources) plain(host string) bool {
	if r, ok := s.registry(host); ok {
		return r.Transport == options.TransportHTTP
	}
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	return loopback(host)
}

// credentials returns the credentials to log in with. Errors: Config.
func (s Sources) credentials(repo name.Repository) (authn.Authenticator, error) {
	r, _ := s.registry(repo.RegistryStr())
	if r.Username != "" || r.BearerToken != "" {
		return authn.FromConfig(authn.AuthConfig{Username: r.Username, Password: r.Password, RegistryToken: r.BearerToken}), nil
	}
	if s.Keychain == nil {
		return authn.Anonymous, nil
	}
	auth, err := s.Keychain.Resolve(repo)
	return auth, fault.Wrap(fault.Config, err, "read the credentials for %s", host(repo))
}

func host(repo name.Repository) string {
	if repo.RegistryStr() == dockerServer {
		return dockerHost
	}
	return repo.RegistryStr()
}

// repository is the place that a reference names, with a connection to it.
type repository struct {
	ref   name.Reference
	scope string // of the login
	auth  authn.Authenticator
	base  *patient
	http  http.Client
	blobs string // directory of partly downloaded layers
	room  func() error
}

// connect logs in to the registry of ref, with [transport.PullScope] or
// [transport.PushScope]. Errors: Upstream, Config, ImageNotFound.
func (s *Store) connect(ctx context.Context, ref name.Reference, scope string) (*repository, error) {
	repo := ref.Context()
	auth, err := s.c.Sources.credentials(repo)
	if err != nil {
		return nil, err
	}
	r := &repository{ref: ref, scope: scope, auth: auth, blobs: s.blobs(), room: s.c.Room, base: newPatient(s.c.Sources, repo.RegistryStr())}
	r.http.Transport, err = transport.NewWithContext(ctx, repo.Registry, auth, r.base, []string{repo.Scope(scope)})
	if err != nil {
		r.close()
		return nil, r.explain(ctx, err)
	}
	return r, nil
}

func (r *repository) close() { r.base.base.CloseIdleConnections() }

// content reads the image that the reference names, and returns it with the
// digest by which the registry knows it.
func (r *repository) content(ctx context.Context) (content, v1.Hash, error) {
	data, mediaType, err := r.get(ctx, "manifests/"+r.ref.Identifier(), maxManifest)
	if err != nil {
		return content{}, v1.Hash{}, err
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digestOf(data)}
	if pinned, ok := r.ref.(name.Digest); ok && pinned.DigestStr() != d.Digest.String() {
		return content{}, d.Digest, r.lies("the manifest %s has the digest %s", pinned.DigestStr(), d.Digest)
	}
	top := remoteParts{r, d.Digest, data}
	p := picker{from: top}
	switch {
	case mediaType.IsIndex():
		if err := p.look(ctx, d); err != nil {
			return content{}, d.Digest, err
		}
		if d, err = p.pick(); err != nil {
			return content{}, d.Digest, err
		}
	case !mediaType.IsImage():
		return content{}, d.Digest, fault.New(fault.Image, "it has the type %.100q, want an image", mediaType)
	}
	c, err := readManifest(ctx, top, d)
	for i := range c.layers {
		c.layers[i].digest = v1.Hash{} // fetch verifies it instead
	}
	c.close = r.close
	return c, top.digest, err
}

// remoteParts are an image's parts at a registry. The first document was
// downloaded already.
type remoteParts struct {
	*repository
	digest v1.Hash
	first  []byte
}

func (p remoteParts) manifest(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	if d.Digest == p.digest {
		return p.first, nil
	}
	return p.document(ctx, "manifests/", d, maxManifest)
}

func (p remoteParts) config(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	return p.document(ctx, "blobs/", d, maxDocument)
}

func (p remoteParts) layer(d v1.Descriptor) opener {
	return func(ctx context.Context, fetched func(int64)) (io.ReadCloser, error) {
		return p.fetch(ctx, d, fetched)
	}
}

// document downloads the document that d describes, and verifies it.
func (r *repository) document(ctx context.Context, kind string, d v1.Descriptor, most int64) ([]byte, error) {
	if err := checkDigest(d.Digest); err != nil {
		return nil, err
	}
	if d.Size > most {
		return nil, fault.New(fault.Image, "part %s of the image has %d bytes, over %d", d.Digest, d.Size, most)
	}
	data, _, err := r.get(ctx, kind+d.Digest.String(), most)
	if err == nil && digestOf(data) != d.Digest {
		err = r.lies("part %s of the image has the digest %s", d.Digest, digestOf(data))
	}
	return data, err
}

// accepted are the types of manifests that this package understands.
var accepted = strings.Join([]string{
	string(types.OCIImageIndex), string(types.OCIManifestSchema1),
	string(types.DockerManifestList), string(types.DockerManifestSchema2),
}, ", ")

// get downloads a document of at most most bytes. Failures that may pass are
// retried.
func (r *repository) get(ctx context.Context, what string, most int64) (data []byte, mediaType types.MediaType, err error) {
	err = r.persist(ctx, func() (bool, error) {
		resp, err := r.ask(ctx, what, http.Header{"Accept": {accepted}}, http.StatusOK)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		mediaType = types.MediaType(resp.Header.Get("Content-Type"))
		data, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
		if int64(len(data)) > most {
			return false, fault.New(fault.Image, "%s of the image has over %d bytes", what, most)
		}
		return false, err
	})
	return data, mediaType, err
}

// ask asks for a document or blob. The caller closes the body of the answer.
func (r *repository) ask(ctx context.Context, what string, header http.Header, codes ...int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.at(what).String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return r.do(req, codes...)
}

// at returns the address of a part of the repository.
func (r *repository) at(what string) *url.URL {
	repo := r.ref.Context()
	return &url.URL{Scheme: repo.Scheme(), Host: repo.RegistryStr(), Path: "/v2/" + repo.RepositoryStr() + "/" + what}
}

// do sends one request. An answer with another code than codes is an error. The
// caller closes the body of the answer.
func (r *repository) do(req *http.Request, codes ...int) (*http.Response, error) {
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, err
	}
	if err := transport.CheckError(resp, codes...); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// tries is how many times in a row something may fail without any progress.
const tries = 4

// persist calls attempt until it succeeds, fails for good, or has failed too
// often in a row without progress. It explains the failure.
func (r *repository) persist(ctx context.Context, attempt func() (gotOn bool, err error)) error {
	for failed := 1; ; failed++ {
		gotOn, err := attempt()
		if gotOn {
			failed = 1
		}
		if err == nil {
			return nil
		}
		if failed == tries || !passing(err) || ctx.Err() != nil {
			return r.explain(ctx, err)
		}
		select {
		case <-time.After(r.base.timeout / 300 << (2 * (failed - 1))): // 0.1 s, 0.4 s, 1.6 s
		case <-ctx.Done():
		}
	}
}

// closedIdle is in the error that net/http returns when the registry has closed a connection
// just as a request was to be sent on it. It has no value of its own there.
const closedIdle = "server closed idle connection"

// passing reports whether a failure may be gone at the next try.
func passing(err error) bool {
	var refused *transport.Error
	switch {
	case fault.Classified(err), errors.Is(err, errSilent):
		return false
	case errors.As(err, &refused):
		return refused.StatusCode >= 500
	}
	var op *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &op) || strings.Contains(err.Error(), closedIdle)
}

// explain turns a failure into one that tells the user what it means. Errors:
// Upstream, ImageNotFound, and what ended ctx.
func (r *repository) explain(ctx context.Context, err error) error {
	at := host(r.ref.Context())
	var address *url.Error
	var refused *transport.Error
	switch {
	case ctx.Err() != nil:
		return fault.Of(ctx.Err())
	case fault.Classified(err):
		return err
	case errors.Is(err, errSilent):
		return fault.New(fault.Upstream, "registry %s sent nothing for %v: check that it and the network are up, and try again", at, r.base.timeout)
	case errors.As(err, &refused):
		return r.refused(at, refused)
	case errors.As(err, &address):
		err = address.Err // the text of the outer error may contain a signed address
	}
	return fault.Wrap(fault.Upstream, err, "can't reach registry %s: check its name, and that it and the network are up", at)
}

// refused explains a registry's answer that reports an error.
func (r *repository) refused(at string, e *transport.Error) error {
	said := http.StatusText(e.StatusCode)
	if len(e.Errors) > 0 {
		said = fmt.Sprintf("%.200q", string(e.Errors[0].Code)+": "+e.Errors[0].Message)
	}
	switch {
	case e.StatusCode == http.StatusNotFound && r.scope == transport.PushScope:
		return fault.New(fault.Upstream, "registry %s has no such repository, or takes no images (%s)", at, said)
	case e.StatusCode == http.StatusNotFound:
		return fault.New(fault.ImageNotFound, "registry %s has no such image", at)
	case e.StatusCode == http.StatusTooManyRequests:
		return fault.New(fault.Upstream, "registry %s answered that it had too many requests: wait, or log in to it (%s)", at, said)
	case e.StatusCode != http.StatusUnauthorized && e.StatusCode != http.StatusForbidden:
		return fault.New(fault.Upstream, "registry %s failed with status %d (%s): try again later", at, e.StatusCode, said)
	case r.auth == authn.Anonymous && r.scope == transport.PushScope:
		return fault.New(fault.Upstream, "registry %s takes nothing without a login: log in with `docker login %s`, or add credentials to the registries (%s)", at, at, said)
	case r.auth == authn.Anonymous:
		return fault.New(fault.Upstream, "registry %s does not show it without a login, if it exists: log in with `docker login %s`, or add credentials to the registries (%s)", at, at, said)
	}
	return fault.New(fault.Upstream, "registry %s refused the credentials: they are wrong, have expired or lack the permission: log in again with `docker login %s`, or correct those in the registries (%s)", at, at, said)
}

// lies returns the failure of a registry that sends something else than it
// announced.
func (r *repository) lies(format string, args ...any) error {
	return fault.New(fault.Upstream, "registry %s sends wrong data: %s", host(r.ref.Context()), fmt.Sprintf(format, args...))
}
