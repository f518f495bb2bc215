package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"sandbox/core/fault"
)

// sendable is a blob that can be sent to a registry.
type sendable struct {
	digest v1.Hash
	size   int64
	open   func() io.Reader // a new reader of its bytes each time
}

func bytesContent(data []byte) sendable {
	return sendable{digestOf(data), int64(len(data)), func() io.Reader { return bytes.NewReader(data) }}
}

// has reports whether the repository has a blob.
func (r *repository) has(ctx context.Context, digest v1.Hash) (has bool, err error) {
	err = r.persist(ctx, func() (bool, error) {
		has = false
		resp, err := r.send(ctx, http.MethodHead, r.at("blobs/"+digest.String()), nil, http.StatusOK)
		var refused *transport.Error
		if errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
			return false, nil
		}
		if err == nil {
			has = true
			_ = resp.Body.Close()
		}
		return false, err
	})
	return has, err
}

// give sends a blob unless the repository has it. A blob whose connection breaks
// is sent again from its start.
func (r *repository) give(ctx context.Context, b sendable, sent func(int64)) error {
	has, err := r.has(ctx, b.digest)
	if err != nil || has {
		return err
	}
	return r.persist(ctx, func() (bool, error) { return false, r.upload(ctx, b, sent) })
}

// upload sends a blob once: it asks for a place, sends the bytes there and names
// their digest, which the registry compares.
func (r *repository) upload(ctx context.Context, b sendable, sent func(int64)) error {
	at, err := r.step(ctx, http.MethodPost, r.at("blobs/uploads/"), nil, http.StatusAccepted)
	if err != nil {
		return err
	}
	told := sendable{b.digest, b.size, func() io.Reader {
		return &meter{ctx: ctx, r: b.open(), progress: sent}
	}}
	if at, err = r.step(ctx, http.MethodPatch, at, &told, http.StatusAccepted, http.StatusNoContent); err != nil {
		return err
	}
	query := at.Query()
	query.Set("digest", b.digest.String())
	at.RawQuery = query.Encode()
	resp, err := r.send(ctx, http.MethodPut, at, nil, http.StatusCreated)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// step sends one request of an upload and returns where the next one goes.
func (r *repository) step(ctx context.Context, method string, at *url.URL, body *sendable, codes ...int) (*url.URL, error) {
	resp, err := r.send(ctx, method, at, body, codes...)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	next, err := resp.Location()
	if err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "registry %s does not say where a layer is to be sent", host(r.ref.Context()))
	}
	return next, nil
}

// send sends one request, with a body or without.
func (r *repository) send(ctx context.Context, method string, at *url.URL, body *sendable, codes ...int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(body.open()), nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = body.size
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	return r.do(req, codes...)
}

// putManifest makes an image known by its tag.
func (r *repository) putManifest(ctx context.Context, manifest []byte) error {
	return r.persist(ctx, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, r.at("manifests/"+r.ref.Identifier()).String(), bytes.NewReader(manifest))
		if err != nil {
			return false, err
		}
		req.Header.Set("Content-Type", string(types.OCIManifestSchema1))
		resp, err := r.do(req, http.StatusCreated, http.StatusOK, http.StatusAccepted)
		if err == nil {
			_ = resp.Body.Close()
		}
		return false, err
	})
}
