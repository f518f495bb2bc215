package httpd

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/image"
)

// images is the reply to a listing.
type images struct {
	Images []api.Image `json:"images"`
	Next   *string     `json:"next_page_token"`
}

// listImages lists the images of the store by their names. An image whose record
// is damaged hides no other.
func (s *Server) listImages(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	paging, err := parsePaging(query)
	if err != nil {
		return err
	}
	all, err := s.Images.List()
	if err != nil {
		s.Log.LogAttrs(r.Context(), slog.LevelError, "images can't be read", slog.String("request_id", r.id), slog.Any("error", err))
	}
	return writeJSON(w, http.StatusOK, pageOfImages(all, paging))
}

// pageOfImages returns one page of images that are in the order of their names.
// Its tokens hold the same time for all, so that only the name counts.
func pageOfImages(all []api.Image, p paging) images {
	page := images{Images: []api.Image{}}
	for _, img := range all {
		if p.after.ID != "" && img.Name <= p.after.ID {
			continue
		}
		if len(page.Images) == p.size {
			token := tokenOf(time.Unix(0, 0), page.Images[p.size-1].Name).String()
			page.Next = &token
			break
		}
		page.Images = append(page.Images, img)
	}
	return page
}

func (s *Server) getImage(w http.ResponseWriter, r *request) error {
	img, err := s.Images.Describe(r.param("reference"))
	if err != nil {
		return refused("reference", err)
	}
	return writeJSON(w, http.StatusOK, img)
}

func (s *Server) removeImage(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	force, err := flag(query, "force")
	if err != nil {
		return err
	}
	if err := s.Images.Remove(r.Context(), r.param("reference"), force); err != nil {
		return refused("reference", err)
	}
	return writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}

// refused names the member that held what the store says is no name of an image.
func refused(member string, err error) error {
	if fault.Is(err, fault.InvalidArgument) {
		return document.Invalid(member, "name", "can't be used: "+err.Error())
	}
	return err
}

// importImage makes an image of the tar that is the body.
func (s *Server) importImage(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	name := query.Get("name")
	if !query.Has("name") {
		return document.Invalid("name", "required", "is missing")
	}
	if err := refused("name", image.CheckName(name)); err != nil { // before a client sends gigabytes in vain
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	img, err := s.Images.ImportTar(ctx, name, rawBody{r.Body}, nil)
	if err != nil {
		return s.brokenOff(err)
	}
	return writeJSON(w, http.StatusOK, img)
}

// pullDocument is the body of a request that pulls an image.
type pullDocument struct {
	Reference *string `json:"reference"`
	IfMissing *bool   `json:"if_missing"`
}

// decodePull reads the body of a request that pulls an image. Errors: Malformed,
// InvalidArgument, with fields.
func (s *Server) decodePull(doc []byte) (ref string, ifMissing bool, err error) {
	var d pullDocument
	var p document.Problems
	if doc == nil {
		doc = []byte("{}") // its failure names the missing member
	}
	if err := p.Read(doc, &d, document.MaxSize); err != nil {
		return "", false, err
	}
	p.Required("reference", d.Reference != nil)
	if d.Reference != nil {
		ref = *d.Reference
		err := s.Images.CheckReference(ref)
		p.When(err != nil, "reference", "name", "can't be used: %v", err)
	}
	return ref, d.IfMissing != nil && *d.IfMissing, p.Err(fault.InvalidArgument)
}

// pullImage pulls an image, or with if_missing one that is not in the store.
func (s *Server) pullImage(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	ref, ifMissing, err := s.decodePull(doc)
	if err != nil {
		return err
	}
	pull := s.Images.Pull
	if ifMissing {
		pull = s.Images.Get
	} else if !s.Images.Pulls() {
		return fault.New(fault.PermissionDenied, `this server pulls no images, because of pull = "never" in its config.toml: import one`)
	}
	return s.workOnImage(w, r, api.PullImage, func(ctx context.Context, progress func(api.ImageProgress)) (any, error) {
		return pull(ctx, ref, progress)
	})
}
