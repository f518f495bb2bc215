// Package spool keeps the output of execs on disk, for many readers. They can
// read it live, from the beginning, and even after the process that read the
// command's output was killed.
//
// A box has a directory, and an exec has up to four files in it:
//
//	ID.json    its [api.Exec]
//	ID.stdout  the bytes of stdout, each at its own offset
//	ID.stderr  the same for stderr
//	ID.index   how the streams grew, event by event: see index.go
//
// Bytes go from the command's pipe to the file without passing through this
// process. A file's length says how much of its stream has come. So a process
// that is killed neither loses a byte nor counts one twice: what is in the
// files beyond the last entry of the index is what the process had no time to
// announce to readers. Only the bytes of a terminal, which are stdout, are read
// and written.
//
// The disk space of an exec is limited. When it exceeds the limit, the oldest
// output is dropped as soon as all readers that hold it have read it. Its place
// becomes a hole in the file, so offsets do not change.
package spool

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/store"
)

// DefaultLimit is how many bytes an exec's output may take on disk (contract,
// section 3).
const DefaultLimit = 64 << 20

// DefaultKeep is how many execs of a box are remembered (contract, section 3).
const DefaultKeep = 1024

// Config says where output is kept, and how much of it.
type Config struct {
	Dir   string       // absolute; created when the first exec needs it
	Limit int64        // bytes per exec; 0 means DefaultLimit; at least 1 MiB
	Keep  int          // how many execs of a box are remembered; 0 means DefaultKeep
	Log   *slog.Logger // for failures that no caller can be told of; nil means no log
	// Begun is called for each exec that is followed from now on. It must
	// not block. It may be nil.
	Begun func(*Exec)
}

// Store holds all spooled execs of a home. Only one process at a time may have
// it open. It is safe for concurrent use.
type Store struct {
	dir     string
	limit   int64
	most    int     // execs that are remembered of a box
	reads   bool    // another process writes: see [Read]
	watcher watcher // tells of what that one writes
	log     *slog.Logger
	begun   func(*Exec)
	// timeout is how long an events reader may be a whole spool behind
	// before output is dropped that it has not read (contract, section 3).
	// It is also how long output that a command has left in its pipes waits
	// for room on a full disk.
	timeout time.Duration

	mu      sync.Mutex
	live    map[string]*Exec   // the running execs, by id
	known   map[string][]Place // the execs of a box, oldest first; read from disk when first needed
	closing bool               // nothing enters live any more
	pumps   sync.WaitGroup
	taking  singleflight.Group // of TakeOver, by the ids of execs
}

// Open returns the store in c.Dir. It does not read or create anything yet.
func Open(c Config) *Store {
	if c.Limit == 0 {
		c.Limit = DefaultLimit
	}
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{
		dir: c.Dir, limit: max(c.Limit, 1<<20), most: c.Keep, log: c.Log, begun: c.Begun, timeout: 10 * time.Second,
		live: map[string]*Exec{}, known: map[string][]Place{},
	}
}

func (s *Store) boxDir(box string) string { return filepath.Join(s.dir, box) }

func (s *Store) records(box string) store.Dir[written] {
	return store.Dir[written]{Path: s.boxDir(box)}
}

// Start takes over a command that was just started, and reads its output from
// now on. If open is set, an attached client provides its input. The command
// belongs to the Store afterwards, even if Start fails: then the command is
// ended, because nobody could follow it. Errors: Storage.
func (s *Store) Start(command *core.Exec, open bool) (*Exec, error) {
	rec := command.Record()
	e := s.exec(written{Exec: rec})
	e.command, e.open = command, open
	err := s.records(rec.BoxID).Put(rec.ID, written{Exec: rec}, false)
	if err == nil {
		err = s.begin(e)
	}
	if err != nil {
		abandon(command)
		_ = s.records(rec.BoxID).Delete(rec.ID)
		return nil, err
	}
	s.remember(rec.BoxID, placeOf(rec))
	return e, nil
}

// begin starts the pump of an exec.
func (s *Store) begin(e *Exec) error {
	u, err := newPump(e)
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "follow exec %s", e.id)
	}
	if err := e.out.hold(); err != nil { // no lock is needed: nobody else knows e yet
		u.poll.close()
		return e.storage(err)
	}
	from := e.command.From()
	if err := e.out.skip(mark{from.Stdout, from.Stderr}); err != nil {
		e.out.release()
		u.poll.close()
		return e.storage(err)
	}
	e.command.Took(e.out.sizes.total()) // what an earlier process has read of it
	if !s.enter(e) {
		u.stays = true // the next process that opens the store goes on with it
		u.finish()
		e.out.release()
		u.poll.close()
		return nil
	}
	if s.begun != nil {
		s.begun(e)
	}
	go func() {
		defer s.pumps.Done()
		u.run()
		s.mu.Lock()
		delete(s.live, e.id)
		s.mu.Unlock()
		e.mu.Lock()
		e.out.release()
		e.mu.Unlock()
	}()
	return nil
}

// enter adds a running exec, for a goroutine that calls s.pumps.Done when it leaves. It
// returns false if the store closes: nobody would tell that goroutine to stop.
func (s *Store) enter(e *Exec) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.live[e.id] = e
	s.pumps.Add(1)
	return true
}

// Get returns an exec of a box. Errors: ExecNotFound, Storage.
func (s *Store) Get(box, id string) (*Exec, error) {
	s.mu.Lock()
	e := s.live[id]
	s.mu.Unlock()
	if e != nil && e.Record().BoxID == box {
		return e, nil
	}
	if !ids.Exec.Valid(id) {
		return nil, fault.New(fault.ExecNotFound, "no exec %.60q", id)
	}
	rec, err := s.records(box).Get(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.ExecNotFound, "no exec %s in box %s", id, box)
	case s.reads && err == nil:
		return s.read(rec)
	case s.reads:
		return nil, err
	case errors.Is(err, store.ErrDamaged):
		rec = s.setAside(box, s.records(box).Damage(id, err))
	case err != nil:
		return nil, err
	}
	e = s.exec(rec)
	e.ended, e.out.final = true, true
	return e, nil
}

// setAside replaces a damaged record by one that says what is still known: the
// exec has failed, and nobody knows any more how it ended. Its output stays.
func (s *Store) setAside(box string, d store.Damaged) written {
	at := d.At.UTC()
	rec := written{Exec: api.Exec{ID: d.Key, BoxID: box, Status: api.ExecFailed, Cmd: []string{}, CreatedAt: at, FinishedAt: &at}}
	sizes, err := sizesOf(filepath.Join(s.boxDir(box), d.Key))
	rec.Exec = counted(rec.Exec, sizes)
	file, asideErr := s.records(box).SetAside(d.Key)
	if err = errors.Join(err, asideErr); err == nil {
		err = s.records(box).Put(d.Key, rec, false)
	}
	s.log.Error("the damaged record of an exec was set aside", "exec_id", d.Key, "box_id", box, "file", file, "damage", d.Err, "error", err)
	return rec
}

// load reads the records of a box's execs. Errors: those of [store.Dir.List].
func (s *Store) load(box string) ([]written, error) {
	recs, damaged, err := s.records(box).List()
	if err != nil {
		s.log.Warn("records of execs can't be read", "box_id", box, "error", err)
	}
	for _, d := range damaged {
		if ids.Exec.Valid(d.Key) && !s.reads {
			recs = append(recs, s.setAside(box, d))
		}
	}
	return recs, err
}

// AwaitRecords waits until the records of a box's execs are final. It is meant
// for a box that has ended, because its execs have ended too. Errors: those of
// ctx.
func (s *Store) AwaitRecords(ctx context.Context, box string) error {
	s.mu.Lock()
	live := slices.Collect(maps.Values(s.live))
	s.mu.Unlock()
	for _, e := range live {
		if e.Record().BoxID != box {
			continue
		}
		if err := e.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) exec(w written) *Exec {
	e := &Exec{s: s, id: w.ID, box: w.BoxID, rec: w.Exec, lost: w.Lost, room: make(chan struct{}, 1)}
	e.turn, e.pen = make(chan struct{}, 1), make(chan struct{}, 1)
	e.out.base = filepath.Join(s.boxDir(w.BoxID), w.ID)
	return e
}

// Places returns the execs of a box, newest first.
func (s *Store) Places(box string) []Place {
	places := slices.Clone(s.list(box))
	slices.Reverse(places)
	return places
}

// list returns the execs of a box, oldest first. A record that can't be read
// does not hide the others.
func (s *Store) list(box string) []Place {
	s.mu.Lock()
	places, ok := s.known[box]
	s.mu.Unlock()
	if ok && !s.reads {
		return places
	}
	recs, _ := s.load(box) // the failure is in the log
	slices.SortFunc(recs, func(a, b written) int { return a.CreatedAt.Compare(b.CreatedAt) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if places, ok := s.known[box]; ok && !s.reads {
		return places
	}
	places = nil
	for _, rec := range recs {
		places = append(places, placeOf(rec.Exec))
	}
	if !s.reads {
		s.known[box] = places
	}
	return places
}

// remember adds an exec to its box. If there are too many, it forgets the
// oldest one that has ended.
func (s *Store) remember(box string, place Place) {
	s.list(box)
	var old []Place
	s.mu.Lock()
	places := append([]Place(nil), s.known[box]...) // a copy, because others may be reading the old slice
	if !slices.ContainsFunc(places, func(p Place) bool { return p.ID == place.ID }) {
		places = append(places, place)
	}
	for i := 0; len(places) > s.most && i < len(places); {
		if id := places[i].ID; s.live[id] != nil || id == place.ID {
			i++
			continue
		}
		old = append(old, places[i])
		places = slices.Delete(places, i, i+1)
	}
	s.known[box] = places
	s.mu.Unlock()
	for _, place := range old {
		s.erase(box, place.ID)
	}
}

func (s *Store) erase(box, id string) {
	base := filepath.Join(s.boxDir(box), id)
	for _, suffix := range append(suffixes[:], indexSuffix, ".json", store.AsideSuffix) {
		if err := os.Remove(base + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("output can't be removed", "exec_id", id, "error", err)
		}
	}
}
