package httpd

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/image"
)

// exportImage streams an image as the tar of an OCI layout. What it fails with
// before the first byte has its status; later it breaks the reply off.
func (s *Server) exportImage(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	var p document.Problems
	p.Required("reference", query.Has("reference"))
	how, err := image.CheckCompression(api.Compression(query.Get("compression")))
	p.When(err != nil || query.Has("compression") && query.Get("compression") == "", "compression", "value", "must be zstd, gzip or none")
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	out := &archiveReply{w: w, name: archiveName(query.Get("reference"))}
	err = s.Images.Export(ctx, query.Get("reference"), out, image.ExportOptions{Compression: how})
	if errors.Is(err, errGone) { // nobody is left to tell
		return nil
	}
	return refused("reference", s.brokenOff(err))
}

// archiveName returns what a client may call the archive of an image.
func archiveName(ref string) string {
	return strings.NewReplacer(":", "-", "@", "-").Replace(ref[strings.LastIndexByte(ref, '/')+1:]) + ".tar"
}

// archiveReply is the body of an export. Its head is written with its first bytes,
// because a failure before them has another one.
type archiveReply struct {
	w     http.ResponseWriter
	name  string
	begun bool
}

func (a *archiveReply) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun = true
		header := a.w.Header()
		header.Set("Content-Type", "application/x-tar")
		header.Set("Content-Disposition", disposition(a.name))
		a.w.WriteHeader(http.StatusOK)
	}
	n, err := a.w.Write(p)
	if err != nil {
		err = errGone
	}
	return n, err
}

// pushDocument is the body of a request that pushes an image.
type pushDocument struct {
	Reference   *string          `json:"reference"`
	As          *string          `json:"as"`
	Compression *api.Compression `json:"compression"`
}

// decodePush reads the body of a request that pushes an image. Errors: Malformed,
// InvalidArgument, with fields.
func (s *Server) decodePush(doc []byte) (ref string, o image.PushOptions, err error) {
	var d pushDocument
	var p document.Problems
	if doc == nil {
		doc = []byte("{}") // its failure names the missing member
	}
	if err := p.Read(doc, &d, document.MaxSize); err != nil {
		return "", o, err
	}
	p.Required("reference", d.Reference != nil)
	if d.Reference != nil {
		ref = *d.Reference
		err := s.Images.CheckReference(ref)
		p.When(err != nil, "reference", "name", "can't be used: %v", err)
	}
	if d.As != nil {
		o.As = *d.As
		err := s.Images.CheckPush(o.As)
		p.When(err != nil, "as", "name", "can't be used: %v", err)
	}
	if d.Compression != nil {
		o.Compression, err = image.CheckCompression(*d.Compression)
		p.When(err != nil, "compression", "value", "must be zstd, gzip or none")
	}
	return ref, o, p.Err(fault.InvalidArgument)
}

// pushImage sends an image to a registry.
func (s *Server) pushImage(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	ref, o, err := s.decodePush(doc)
	if err != nil {
		return err
	}
	if !s.Images.Pulls() {
		return fault.New(fault.PermissionDenied, `this server pushes no images, because of pull = "never" in its config.toml: export it`)
	}
	return s.workOnImage(w, r, api.PushDone, func(ctx context.Context, progress func(api.ImageProgress)) (any, error) {
		o.Progress = progress
		return s.Images.Push(ctx, ref, o)
	})
}
