package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// quiet is how long the shim must have had nothing to do before it makes a spare:
// who makes boxes one after another waits for none that nobody asked for.
const quiet = 50 * time.Millisecond

// spare is a box that nobody has asked for yet. Its init is prepared and waits to
// hear which box it is in; nothing else has ever run in it. Its directory stands
// for it on disk: a shim that finds one without a box's record removes all that has
// its slot.
type spare struct {
	slot   string // a name as ids of boxes are
	shape  shape
	base   int     // as record.Box.UIDBase
	layers []inode // of the layers when they were mounted
	life   *life   // nil while it is being made
	reroot bool    // it was taken for a box that needs another root file system
}

// shape is what can't be changed of a spare.
type shape struct {
	layers                    string // the paths, each with a zero byte behind it; "" for an empty root file system
	cpus, memoryMiB, maxTasks int
	network                   string
	passing                   bool // see tree.mount
}

// limits returns the shape without what a spare can be given another of: its root
// file system.
func (s shape) limits() shape {
	s.layers, s.passing = "", false
	return s
}

// shapeOf returns the shape of the spare that is nearest to a box. own says that the
// box needs a root file system of its own all the same, because it has volumes or a
// disk of a size. Anybody may change a directory of the host, and so no spare waits on
// one: the spare for such a box has no layers.
func shapeOf(req core.CreateRequest) (s shape, own bool) {
	o := req.Options
	s = shape{"", o.CPUs, o.MemoryMiB, maxTasks(o), o.Network, o.AutoRemove}
	if o.RootfsPath != "" {
		return s, true
	}
	for _, layer := range req.Image.Layers {
		s.layers += layer + "\x00"
	}
	return s, o.DiskSizeGB != 0 || len(o.Volumes) > 0
}

// record returns the record with which the launcher makes a spare. It is never
// written. The layer of a spare without any is an empty directory in its own, dir.
func (s *spare) record(dir string) record.Box {
	layers := s.shape.paths()
	if len(layers) == 0 {
		layers = []string{filepath.Join(dir, emptyLayer)}
	}
	return record.Box{
		Record: core.Record{ID: s.slot, Options: options.Box{
			CPUs: s.shape.cpus, MemoryMiB: s.shape.memoryMiB, Processes: s.shape.maxTasks,
			Network: s.shape.network, AutoRemove: s.shape.passing,
		}},
		Image: core.Image{Layers: layers}, UIDBase: s.base,
	}
}

func (s shape) paths() []string {
	if s.layers == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s.layers, "\x00"), "\x00")
}

// inode tells a directory from another one that has its path later.
type inode struct{ device, number uint64 }

// inodes returns the inodes of paths; the zero inode for one that is not there.
func inodes(paths []string) []inode {
	all := make([]inode, len(paths))
	for i, path := range paths {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			all[i] = inode{st.Dev, st.Ino}
		}
	}
	return all
}

// whole reports whether the layers of a spare are still those of its image, which
// may have been removed, and even imported again, meanwhile.
func (s *spare) whole() bool { return slices.Equal(s.layers, inodes(s.shape.paths())) }

// gone reports whether a layer is not there any more.
func (s shape) gone() bool { return slices.Contains(inodes(s.paths()), inode{}) }

// pool holds the spares of a home: one for each of the last creates, up to its
// size. So it follows what is asked for, whether that is one image or several.
type pool struct {
	filling sync.Mutex  // held while spares are made or ended, and before mu
	layers  *os.File    // tells of layers that are removed; nil before the first spare; guarded by filling
	timer   *time.Timer // fills the pool

	mu      sync.Mutex
	size    int      // below 0: each create makes its spare itself
	recent  []shape  // of the last creates, newest first
	spares  []*spare // also one that is being made
	clients map[*wire.Conn]struct{}
	busy    int // requests that are being carried out
	closed  bool
}

// newPool returns a pool that calls fill after each time of quiet.
func newPool(fill func()) *pool {
	p := &pool{timer: time.AfterFunc(time.Hour, fill), clients: map[*wire.Conn]struct{}{}}
	p.timer.Stop()
	return p
}

// join says that a client has come. After it the caller calls part, before it closes conn.
func (p *pool) join(conn *wire.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[conn] = struct{}{}
}

func (p *pool) part(conn *wire.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clients, conn)
}

// attended reports whether there is a client. The kernel is asked, since whoever reads from
// a connection may notice much later that the client has hung up. p.mu is held.
func (p *pool) attended() bool {
	for conn := range p.clients {
		if !conn.HungUp() {
			return true
		}
	}
	return false
}

// settle waits until no spare is being made. Without a client none is begun from then on.
func (p *pool) settle() {
	p.filling.Lock()
	p.filling.Unlock() //nolint:staticcheck // there is nothing to do meanwhile
}

// enter says that a request has come. After it the caller calls leave.
func (p *pool) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy++
	p.timer.Stop()
}

func (p *pool) leave() {
	p.mu.Lock()
	p.busy--
	p.mu.Unlock()
	p.stir()
}

// stir has the pool filled soon, or emptied, unless there is no pool.
func (p *pool) stir() {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := p.size > 0 || len(p.spares) > 0
	if used && p.busy == 0 && !p.closed {
		p.timer.Reset(quiet)
	}
}

// resize sets how many spares there may be. A size below 0 is for tests: each
// create then makes its box of a spare.
func (p *pool) resize(size int) (each bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = size
	return size < 0
}

// take takes a spare for a box out of the pool, and remembers that there was such
// a box. If there is none with the box's root file system, it takes one that can be
// given it. It returns nil if there is none at all.
func (p *pool) take(req core.CreateRequest) *spare {
	want, own := shapeOf(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size > 0 {
		p.recent = append([]shape{want}, p.recent[:min(len(p.recent), p.size-1)]...)
	}
	i := slices.IndexFunc(p.spares, func(s *spare) bool { return s.shape == want && s.life != nil && s.whole() })
	if i < 0 {
		i = slices.IndexFunc(p.spares, func(s *spare) bool { return s.shape.limits() == want.limits() && s.life != nil })
	}
	if i < 0 {
		return nil
	}
	s := p.spares[i]
	p.spares = slices.Delete(p.spares, i, i+1)
	s.reroot = own || s.shape != want || !s.whole()
	return s
}

// missing puts a spare for a request into the pool, for the caller to make, and
// returns it: nil if there is one. p.filling is held.
func (p *pool) missing(req core.CreateRequest) *spare {
	want, _ := shapeOf(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.spares, func(s *spare) bool { return s.shape == want && s.whole() }) {
		return nil
	}
	s := &spare{slot: ids.Box.New(), shape: want}
	p.spares = append(p.spares, s)
	return s
}

// drop takes a spare out of the pool that was made in vain.
func (p *pool) drop(s *spare) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares = slices.DeleteFunc(p.spares, func(other *spare) bool { return other == s })
}

// made says that a spare can be taken from now on.
func (p *pool) made(s *spare, f *life) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.life = f
}

// all returns the spares, also one that is being made.
func (p *pool) all() []*spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.spares)
}

// plan puts the next spare into the pool that is to be made, unless the shim has
// something else to do, and returns it: nil for none. Without a client there is none,
// since the home may be about to be removed. plan takes those out that are not wanted
// any more, for the caller to end. p.filling is held, so none is being made.
func (p *pool) plan() (next *spare, unwanted []*spare) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size < 0 || p.closed {
		return nil, nil
	}
	missing := slices.DeleteFunc(slices.Clone(p.recent[:min(len(p.recent), p.size)]), shape.gone)
	var kept []*spare
	for _, s := range p.spares {
		if i := slices.Index(missing, s.shape); i >= 0 && s.whole() {
			missing, kept = slices.Delete(missing, i, i+1), append(kept, s)
		} else {
			unwanted = append(unwanted, s)
		}
	}
	if len(missing) > 0 && p.busy == 0 && p.attended() {
		next = &spare{slot: ids.Box.New(), shape: missing[0]}
		kept = append(kept, next)
	}
	p.spares = kept
	return next, unwanted
}

// empty takes all spares out of the pool, for the caller to end, and forgets what
// was asked for, so that no more are made before the next create. p.filling is held.
func (p *pool) empty() []*spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.spares
	p.spares, p.recent = nil, nil
	return all
}

// close ends all filling.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.timer.Stop()
}
