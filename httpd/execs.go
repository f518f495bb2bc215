package httpd

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/spool"
)

// startExec starts a command. Its output is spooled from the first byte.
func (s *Server) startExec(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, options.MaxCommand)
	if err != nil {
		return err
	}
	if doc == nil {
		doc = []byte("{}") // its failure names the missing members
	}
	asked, err := options.DecodeExec(doc)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	asked.Exec.KeepStdin = asked.Open // an open input must outlive this process, as the exec does
	command, err := box.Exec(r.Context(), asked.Exec)
	if err != nil {
		return err
	}
	e, err := s.Spool.Start(command, asked.Open)
	if err != nil {
		return err
	}
	if asked.Exec.Stdin && !asked.Open {
		go feed(command, func(p []byte) (int, error) { return e.Feed(context.Background(), p) }, asked.Input)
	}
	rec := e.Record()
	w.Header().Set("Location", s.base(r)+"/boxes/"+rec.BoxID+"/exec/"+rec.ID)
	return writeJSON(w, http.StatusCreated, rec)
}

// feed writes the whole input of a command with write and closes it. It returns when
// the command's descriptors are closed at the latest, so that its goroutine ends.
func feed(command *core.Exec, write func([]byte) (int, error), input string) {
	if command.Record().TTY {
		input += core.EndOfInput
	}
	_, _ = write([]byte(input)) // a command may read as little as it likes
	_ = command.CloseStdin(context.Background())
}

// execs is the reply to a listing.
type execs struct {
	Execs []api.Exec `json:"execs"`
	Next  *string    `json:"next_page_token"`
}

// stored returns an exec whose output can be read here: one that this service has started,
// or a run of the box's main command. Errors: ExecNotFound, Storage.
func (s *Server) stored(box, id string) (*spool.Exec, error) {
	e, err := s.Spool.Get(box, id)
	if fault.Is(err, fault.ExecNotFound) && s.Mains != nil {
		return s.Mains.Get(box, id)
	}
	return e, err
}

// listExecs lists the execs that this service has started, the runs of the main command,
// and the execs that other programs have started, which the box's init knows.
func (s *Server) listExecs(w http.ResponseWriter, r *request) error {
	query, err := r.query()
	if err != nil {
		return err
	}
	paging, err := parsePaging(query)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	others, err := othersExecs(r.Context(), box)
	if err != nil {
		return err
	}
	page, next := paging.of(s.places(box, others))
	reply := execs{Execs: []api.Exec{}, Next: next}
	for _, place := range page {
		rec, err := s.execRecord(box.ID(), place.ID, others)
		if fault.Is(err, fault.ExecNotFound) {
			continue // it was forgotten since the places were read
		}
		if err != nil {
			return err
		}
		rec.Env = nil // only the reply about one exec has it
		reply.Execs = append(reply.Execs, rec)
	}
	return writeJSON(w, http.StatusOK, reply)
}

// othersExecs returns the execs that the box's init knows, by id. A box that does
// not run has none.
func othersExecs(ctx context.Context, box *core.Box) (map[string]api.Exec, error) {
	recs, err := box.Execs(ctx)
	if fault.Is(err, fault.InvalidState) {
		return nil, nil
	}
	others := map[string]api.Exec{}
	for _, rec := range recs {
		others[rec.ID] = rec
	}
	return others, err
}

// places returns all execs of a box, newest first.
func (s *Server) places(box *core.Box, others map[string]api.Exec) []spool.Place {
	places := s.Spool.Places(box.ID())
	if s.Mains != nil {
		places = append(places, s.Mains.Places(box.ID())...)
	}
	ours := map[string]bool{}
	for _, place := range places {
		ours[place.ID] = true
	}
	for id, rec := range others {
		if !ours[id] {
			places = append(places, spool.Place{ID: id, CreatedAt: rec.CreatedAt})
		}
	}
	slices.SortFunc(places, func(a, b spool.Place) int {
		if tokenOf(a.CreatedAt, a.ID).behind(b.CreatedAt, b.ID) {
			return -1
		}
		return 1
	})
	return places
}

// of returns the execs of one page, and the token of the next page or nil.
func (p paging) of(places []spool.Place) (page []spool.Place, next *string) {
	for _, place := range places {
		if p.after.ID != "" && !p.after.behind(place.CreatedAt, place.ID) {
			continue
		}
		if len(page) == p.size {
			token := tokenOf(page[p.size-1].CreatedAt, page[p.size-1].ID).String()
			return page, &token
		}
		page = append(page, place)
	}
	return page, nil
}

// execRecord returns the record of an exec: the spool's if it has one, else that
// of the box's init. Errors: ExecNotFound.
func (s *Server) execRecord(box, id string, others map[string]api.Exec) (api.Exec, error) {
	e, err := s.stored(box, id)
	if rec, ok := others[id]; ok && (fault.Is(err, fault.ExecNotFound) || err == nil && s.elsewhere(e)) {
		return rec, nil
	}
	if err != nil {
		return api.Exec{}, err
	}
	return e.Record(), nil
}

func (s *Server) getExec(w http.ResponseWriter, r *request) error {
	box, err := s.box(r)
	if err != nil {
		return err
	}
	e, rec, err := s.exec(r, box)
	if err != nil {
		return err
	}
	if e != nil {
		return writeJSON(w, http.StatusOK, e.Record())
	}
	return writeJSON(w, http.StatusOK, rec)
}

// elsewhere reports whether another server may have taken over an exec that was lost here.
func (s *Server) elsewhere(e *spool.Exec) bool {
	return s.Shared && e.Record().Status == api.ExecLost
}

// exec finds the exec that the path names. If another program has started it, or taken
// it over, only the box's init knows it: then exec returns nil and the init's record.
// Errors: ExecNotFound.
func (s *Server) exec(r *request, box *core.Box) (*spool.Exec, api.Exec, error) {
	e, err := s.stored(box.ID(), r.param("eid"))
	if err == nil && !s.elsewhere(e) || err != nil && !fault.Is(err, fault.ExecNotFound) {
		return e, api.Exec{}, err
	}
	rec, others := box.ExecRecord(r.Context(), r.param("eid"))
	if others != nil && e != nil || fault.Is(others, fault.InvalidState) { // the box does not run, so that only the spool could know
		return e, rec, err
	}
	return nil, rec, others
}

// spooled finds the exec that the path names, whose output must be in the spool, or be
// taken over from a server that has died. Errors: ExecNotFound, InvalidState (another
// program has started it, or another server serves it).
func (s *Server) spooled(r *request) (*spool.Exec, error) {
	box, err := s.box(r)
	if err != nil {
		return nil, err
	}
	e, rec, err := s.exec(r, box)
	if err == nil && e == nil && s.Shared {
		return s.takeOver(r.Context(), box, rec)
	}
	if err == nil && e == nil {
		return nil, fault.New(fault.InvalidState, "exec %s was started by another program on this server's home, and its output is that program's: "+
			"read it there, or start the command through this server; here the exec can be shown and canceled", rec.ID)
	}
	return e, err
}

// takeOver goes on with an exec of another server, unless that one is still there.
// Errors: InvalidState.
func (s *Server) takeOver(ctx context.Context, box *core.Box, rec api.Exec) (*spool.Exec, error) {
	e, err := s.Spool.TakeOver(ctx, box.ID(), rec.ID, func(ctx context.Context, have core.Position) (*core.Exec, error) {
		return box.AttachBehind(ctx, rec.ID, have)
	})
	if !fault.Is(err, fault.InvalidState) {
		return e, err
	}
	if rec.Status == api.ExecRunning {
		return nil, fault.Wrap(fault.InvalidState, err, "exec %s is served by another server on these boxes: ask that one; as soon as it is gone, this one goes on with the exec", rec.ID)
	}
	return nil, fault.Wrap(fault.InvalidState, err, "exec %s has ended as %s, and its output is at the server that served it: ask that one", rec.ID, rec.Status)
}

const (
	cancelGrace = 2 * time.Second
	maxGraceMS  = maxGrace * 1000
	// recordTimeout bounds how long a cancel or a stop waits until the rest of
	// the output of an ended command is stored.
	recordTimeout = 2 * time.Second
)

// cancelExec ends all processes of an exec, also of one that another program has
// started.
func (s *Server) cancelExec(w http.ResponseWriter, r *request) error {
	grace, err := r.cancelGrace(w)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	e, rec, err := s.exec(r, box)
	if err != nil {
		return err
	}
	if e != nil {
		rec = e.Record()
	}
	if rec.Status != api.ExecRunning {
		return fault.New(fault.InvalidState, "exec %s has ended: it is %s", rec.ID, rec.Status)
	}
	if rec, err = box.Cancel(r.Context(), rec.ID, grace); err != nil {
		return err
	}
	if e == nil {
		return writeJSON(w, http.StatusOK, rec)
	}
	ctx, cancel := context.WithTimeout(r.Context(), recordTimeout)
	defer cancel()
	_ = e.Wait(ctx) // an attached client that does not read may hold the rest up
	return writeJSON(w, http.StatusOK, e.Record())
}

// signalExec sends a signal to the own process of an exec, also of one that another
// program has started. Who is attached makes no difference.
func (s *Server) signalExec(w http.ResponseWriter, r *request) error {
	sig, err := r.signal(w)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	rec, err := box.Signal(r.Context(), r.param("eid"), int(sig))
	if err != nil {
		return err
	}
	if e, err := s.stored(box.ID(), rec.ID); err == nil && !s.elsewhere(e) {
		rec = e.Record() // it has the sizes of the output too
	}
	return writeJSON(w, http.StatusOK, rec)
}

// signal reads the signal that the body names.
func (r *request) signal(w http.ResponseWriter) (unix.Signal, error) {
	var body struct {
		Signal *string `json:"signal"`
	}
	var p document.Problems
	if err := r.members(w, &p, &body); err != nil {
		return 0, err
	}
	p.Required("signal", body.Signal != nil)
	if err := p.Err(fault.Malformed); err != nil {
		return 0, err
	}
	return signalOf(*body.Signal)
}

// signalOf returns a signal by its name, such as INT or SIGINT. Errors:
// InvalidArgument.
func signalOf(name string) (unix.Signal, error) {
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG"))
	if sig == 0 {
		return 0, document.Invalid("signal", "value", "must be a signal's name, such as INT")
	}
	return sig, nil
}

// cancelGrace reads the time between SIGTERM and SIGKILL from the body.
func (r *request) cancelGrace(w http.ResponseWriter) (time.Duration, error) {
	doc, err := r.document(w, maxBody)
	if err != nil || doc == nil {
		return cancelGrace, err
	}
	var body struct {
		Grace *int `json:"grace_ms"`
	}
	if err := document.Read(doc, &body); err != nil || body.Grace == nil {
		return cancelGrace, err
	}
	return time.Duration(*body.Grace) * time.Millisecond, within("grace_ms", *body.Grace, 0, maxGraceMS)
}
