package httpd

import (
	"cmp"
	"net/http"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// snapshotBox makes an image of the disk of a box as it is now.
func (s *Server) snapshotBox(w http.ResponseWriter, r *request) error {
	var body struct {
		Name *string `json:"name"`
	}
	var p document.Problems
	if err := r.members(w, &p, &body); err != nil {
		return err
	}
	p.When(body.Name != nil && *body.Name == "", "name", "empty", "must not be empty")
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	taken, err := box.Snapshot(r.Context(), *cmp.Or(body.Name, new(string)))
	if err != nil {
		return refused("name", err)
	}
	return writeJSON(w, http.StatusCreated, taken)
}

// rollbackBox gives a box the disk of a snapshot of it.
func (s *Server) rollbackBox(w http.ResponseWriter, r *request) error {
	var body struct {
		Snapshot *string `json:"snapshot"`
	}
	var p document.Problems
	if err := r.members(w, &p, &body); err != nil {
		return err
	}
	p.Required("snapshot", body.Snapshot != nil)
	if err := p.Err(fault.InvalidArgument); err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	rec, err := box.Rollback(r.Context(), *body.Snapshot)
	if err != nil {
		return refused("snapshot", err)
	}
	return writeJSON(w, http.StatusOK, rec.Info())
}

// cloneBox makes boxes that are like another one.
func (s *Server) cloneBox(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	if doc == nil {
		doc = []byte("{}") // every member has a default
	}
	c, err := options.DecodeClone(doc)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	made, err := box.Clone(r.Context(), c, s.complete(r), s.Runtime.CheckLimits)
	if err != nil {
		return err
	}
	clones := api.Clones{}
	for _, rec := range made {
		clones.Boxes = append(clones.Boxes, rec.Info())
	}
	return writeJSON(w, http.StatusCreated, clones)
}

// diffBox tells what has changed on the disk of a box.
func (s *Server) diffBox(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	o := options.Diff{From: query.Get("from"), PageToken: query.Get("page_token")}
	if err := number(query, "page_size", &o.PageSize, 1, options.MaxFilePage); err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	page, err := box.Diff(r.Context(), o)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// listSnapshots shows the snapshots of all boxes, or of one.
func (s *Server) listSnapshots(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	id := query.Get("box")
	if rec, err := s.Runtime.Find(r.Context(), id); id != "" && err == nil {
		id = rec.ID // one that is gone is named by its id
	}
	all, err := s.Runtime.Snapshots(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.Snapshots{Snapshots: all})
}
