package httpd

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/httpd/cursor"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

// filter says which boxes a listing shows.
type filter struct {
	status api.BoxStatus // "" for all
	name   string        // "" for all
	labels map[string]string
	paging
}

// paging says which page of a listing is wanted.
type paging struct {
	size  int
	after pageToken // the last entry of the page before; zero for the first page
}

// parsePaging reads the parameters that every listing has. Errors:
// InvalidArgument.
func parsePaging(query url.Values) (p paging, err error) {
	p.size = defaultPage
	if err := number(query, "page_size", &p.size, 1, maxPage); err != nil {
		return p, err
	}
	p.after, err = parsePageToken(query.Get("page_token"))
	return p, err
}

// pageToken is a place in the order of a listing: newest first, then by id.
type pageToken struct{ cursor.Place }

func tokenOf(at time.Time, id string) pageToken { return pageToken{cursor.Place{At: at, ID: id}} }

func (s *Server) listBoxes(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	f, err := parseFilter(query)
	if err != nil {
		return err
	}
	recs, err := s.Runtime.List(r.Context())
	if err != nil {
		return err
	}
	page, next := f.page(recs)
	doc, err := s.summaries.list(page, next)
	if err != nil {
		return err
	}
	return writeDocument(w, http.StatusOK, doc)
}

// listable are the states of boxes that a listing may be of.
var listable = []api.BoxStatus{api.Running, api.Paused, api.Stopped}

func parseFilter(query url.Values) (filter, error) {
	f := filter{paging: paging{size: defaultPage}}
	if len(query) == 0 {
		return f, nil
	}
	f.status, f.name = api.BoxStatus(query.Get("status")), query.Get("name")
	if query.Has("status") && !slices.Contains(listable, f.status) {
		return f, document.Invalid("status", "value", "must be running, paused or stopped")
	}
	for _, label := range query["label"] {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return f, document.Invalid("label", "format", "must be key=value")
		}
		if f.labels == nil {
			f.labels = map[string]string{}
		}
		if other, twice := f.labels[key]; twice && other != value {
			return f, document.Invalid("label", "twice", "asks for two values of "+brief(key))
		}
		f.labels[key] = value
	}
	var err error
	f.paging, err = parsePaging(query)
	return f, err
}

// page returns the boxes of recs to show, in the same order, and the token of the
// next page, or "" if this is the last one.
func (f filter) page(recs []core.Record) (page []*core.Record, next string) {
	page = make([]*core.Record, 0, min(len(recs), f.size))
	for i := range recs {
		rec := &recs[i]
		if !f.shows(rec) {
			continue
		}
		if len(page) == f.size {
			last := page[len(page)-1]
			return page, tokenOf(last.CreatedAt, last.ID).String()
		}
		page = append(page, rec)
	}
	return page, ""
}

func (f filter) shows(rec *core.Record) bool {
	if f.status != "" && rec.Status != f.status || f.name != "" && rec.Options.Name != f.name {
		return false
	}
	for key, value := range f.labels {
		if got, ok := rec.Options.Labels[key]; !ok || got != value {
			return false
		}
	}
	return f.after.ID == "" || f.after.before(rec)
}

// before reports whether rec comes after the place t. It works also when the box
// that t was made of has been removed: t holds the time and the id themselves.
func (t pageToken) before(rec *core.Record) bool { return t.behind(rec.CreatedAt, rec.ID) }

// behind reports whether an entry with this time and id comes after the place t.
func (t pageToken) behind(at time.Time, id string) bool {
	if n := at.Compare(t.At); n != 0 {
		return n < 0
	}
	return id > t.ID
}

func parsePageToken(token string) (pageToken, error) {
	place, ok := cursor.Parse(token)
	if !ok {
		return pageToken{}, document.Invalid("page_token", "value", "must be a next_page_token of an earlier page")
	}
	return pageToken{place}, nil
}

// summaries caches the JSON of boxes in listings, so that a box is encoded once
// for each change and not for each request.
type summaries struct {
	mu    sync.Mutex
	boxes map[string]summary
}

type summary struct {
	updated time.Time
	doc     []byte
}

// list returns the body of a listing's reply.
func (s *summaries) list(recs []*core.Record, next string) ([]byte, error) {
	boxes, size, err := s.all(recs)
	if err != nil {
		return nil, err
	}
	doc := make([]byte, 0, size+len(recs)+len(next)+64)
	doc = append(doc, `{"boxes":[`...)
	for i, box := range boxes {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, box...)
	}
	doc = append(doc, `],"next_page_token":`...)
	if next == "" {
		return append(doc, "null}"...), nil
	}
	return append(append(append(doc, '"'), next...), `"}`...), nil // base64url: nothing to escape
}

// all returns the JSON of each box, and the size of all of it in bytes.
func (s *summaries) all(recs []*core.Record) (boxes [][]byte, size int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	boxes = make([][]byte, len(recs))
	for i, rec := range recs {
		if boxes[i], err = s.encode(rec); err != nil {
			return nil, 0, err
		}
		size += len(boxes[i])
	}
	return boxes, size, nil
}

// maxSummaries bounds the cache. When it is full it is emptied, which also drops
// the boxes that were removed.
const maxSummaries = 2 * core.MaxBoxes

// encode returns the box's JSON. The cached one is valid while updated_at is the
// same: every change of a record sets it anew. The caller holds mu.
func (s *summaries) encode(rec *core.Record) ([]byte, error) {
	if kept, ok := s.boxes[rec.ID]; ok && kept.updated.Equal(rec.UpdatedAt) {
		return kept.doc, nil
	}
	doc, err := encode(rec.Summary())
	if err != nil {
		return nil, err
	}
	if s.boxes == nil || len(s.boxes) >= maxSummaries {
		s.boxes = map[string]summary{}
	}
	s.boxes[rec.ID] = summary{rec.UpdatedAt, doc}
	return doc, nil
}
