package shim

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/hostpath"
	"sandbox/core/options"
	"sandbox/core/store"
	"sandbox/spool"
)

// firstID is the first user and group id of boxes on the host. The range from
// here on is one that neither accounts nor other tools are given ids from
// (systemd documents 0x70000000 to 0x7fffffff as unused).
const firstID = 0x70000000

// keeper owns the boxes of a home. Nothing else writes their records.
type keeper struct {
	home     string
	log      *slog.Logger
	launcher launcher
	records  store.Dir[record.Box]
	idle     *idle
	flushes  atomic.Int64 // how many were requested and are not done
	queue    queue
	pool     *pool
	expiries *expiries
	mains    engine.Mains
	outputs  *spool.Store // of main commands
	merges   sync.Mutex   // held while layers are merged

	mu     sync.Mutex
	boxes  map[string]*box
	owners map[process.Identity]bool // the processes that watchOwner watches
}

// box is one box of the home.
type box struct {
	change sync.Mutex // one start, stop or removal at a time
	spare  *spare     // of which the box is to be made, until it is started; guarded by change
	// retryAt is when the end of its time may be tried again, after a try has failed. It is
	// written with change and mu held, and read with either.
	retryAt time.Time

	mu     sync.Mutex
	rec    record.Box
	life   *life       // nil unless it runs
	ended  *ending     // the end of the present life, or else of the last one
	timer  *time.Timer // goes off when its time has come; nil for none
	unused unused
	stale  bool // the record on disk says that the box runs, and it has ended
	going  bool // the box is removed when its present life has ended
	// becomes is the layer that its disk becomes before it is removed; "" for none.
	becomes string
}

// ending tells when the end of a box's life has been noted, and how that went.
type ending struct {
	noted chan struct{} // closed once the end has been noted
	err   error         // why the end could not be written to the record
}

func (b *box) record() record.Box {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rec
}

func (b *box) set(rec record.Box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rec = rec
}

// bringUp starts a box and writes to its record that it runs. On failure the box
// stays as it was, both in memory and on disk. The caller holds b.change.
func (k *keeper) bringUp(b *box) error {
	if err := errors.Join(checkEnforced(b.record().Options), k.useSquashed(b)); err != nil {
		return err
	}
	rec := b.record()
	rec.UnenforcedLimits = noGroups != ""
	life, err := k.raise(b, &rec)
	if err != nil {
		return err
	}
	rec.Began(life.init)
	if life.net != nil {
		rec.Link, rec.Options.Ports = life.net.Link, life.net.Ports
	}
	rec.Wrote(life.etc)
	// A power cut ends the box. Only what outlives that has to be on the disk.
	err = k.records.Put(rec.ID, rec, !rec.Options.AutoRemove)
	if err == nil && rec.Spare != "" {
		err = standing(rec)
	}
	if err != nil {
		k.launcher.end(life)
		return err
	}
	if err := k.launcher.hear(life); err != nil {
		return k.launcher.explain(err, "", "")
	}
	b.mu.Lock()
	b.rec, b.stale, b.going = rec, false, false
	b.mu.Unlock()
	k.adopt(b, life)
	if err := k.serveMain(b, life); err != nil {
		b.mu.Lock()
		ended := b.ended
		b.mu.Unlock()
		_ = life.handle.Kill()
		<-ended.noted
		return err
	}
	return nil
}

// adopt makes f the life of a box, and watches its init to note its end.
func (k *keeper) adopt(b *box, f *life) {
	b.mu.Lock()
	b.life, b.ended = f, &ending{noted: make(chan struct{})}
	k.schedule(b)
	b.mu.Unlock()
	k.idle.enter()
	go func() {
		defer k.idle.leave()
		_ = f.handle.Wait()
		k.noteEnd(b, f)
	}()
}

// noteEnd cleans up after a box whose init has ended, expectedly or not, and
// writes the end to its record. A box with AutoRemove is removed instead. What
// fails, for example because the disk is full, is repeated until it succeeds.
func (k *keeper) noteEnd(b *box, f *life) {
	k.launcher.cleanUp(f)
	b.awaitServed(f)
	b.mu.Lock()
	b.rec.InitEnded("the box's init ended by itself")
	ended := b.ended
	b.life, b.stale = nil, true
	k.schedule(b)
	b.mu.Unlock()
	defer close(ended.noted)
	if ended.err = k.writeEnd(b); ended.err != nil {
		k.log.Error("record the end of a box", "box", b.record().ID, "error", ended.err)
		k.idle.enter()
		go func() {
			defer k.idle.leave()
			k.insistOnEnd(b.record().ID)
		}()
	}
}

// writeEnd writes to the record of a box that it has ended, or removes it. The record
// of one that is being removed is not written, as that waits for the disk.
func (k *keeper) writeEnd(b *box) (err error) {
	b.mu.Lock()
	rec, going, becomes := b.rec, b.going, b.becomes
	b.mu.Unlock()
	if becomes != "" {
		k.giveDisk(rec, becomes)
	}
	if rec.Passes() || going {
		err = k.forget(b)
	} else {
		err = k.records.Put(rec.ID, rec, true)
	}
	b.mu.Lock()
	b.stale = err != nil
	b.mu.Unlock()
	return err
}

// insistOnEnd waits until the record on disk says that a box has ended, which
// could not be written at first. It tries again every second: the kernel does not
// tell anybody when a disk has room again.
func (k *keeper) insistOnEnd(id string) {
	for stale := true; stale; {
		time.Sleep(time.Second)
		b, err := k.lock(id) // which writes the record
		if err != nil {
			return // the box has been removed
		}
		stale = b.isStale()
		b.change.Unlock()
	}
}

// forget removes a box that does not run: first its directory, then its record.
func (k *keeper) forget(b *box) error {
	id := b.rec.ID
	if err := os.RemoveAll(record.Dir(k.home, id)); err != nil {
		return fault.Disk(err, "remove box %s", id)
	}
	k.forgetOutput(b.rec)
	if err := k.records.Delete(id); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.boxes, id)
	return nil
}

// lock finds a box and locks its change mutex, which the caller unlocks. It
// waits for other changes of the box, and for a life that has ended to be noted.
func (k *keeper) lock(id string) (*box, error) {
	b := k.find(id)
	if b == nil {
		return nil, fault.New(fault.BoxNotFound, "no box %q", id)
	}
	b.change.Lock()
	b.awaitEnd()
	k.mend(b)
	if k.find(id) != b { // removed while we waited, or by mend
		b.change.Unlock()
		return nil, fault.New(fault.BoxNotFound, "no box %q", id)
	}
	return b, nil
}

func (k *keeper) find(id string) *box {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.boxes[id]
}

// isStale reports whether the record on disk still says that the box runs, since
// its end could not be written.
func (b *box) isStale() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stale
}

// awaitEnd waits, if the box's init has ended, until its end has been noted.
func (b *box) awaitEnd() {
	b.mu.Lock()
	ended := b.ended
	over := ended != nil && (b.life == nil || b.life.init.Ended())
	if over && b.life != nil {
		groups(b.life.slot).thaw() // the v1 freezer holds even the dead, and init's end waits for them
	}
	b.mu.Unlock()
	if over {
		<-ended.noted
	}
}

func (k *keeper) start(id string) (core.Record, error) {
	b, err := k.lock(id)
	if err != nil {
		return core.Record{}, err
	}
	defer b.change.Unlock()
	switch rec := b.record(); {
	case rec.Status == api.Running:
		return core.Record{}, fault.New(fault.InvalidState, "box %s is running", id)
	case rec.Status == api.Paused:
		return core.Record{}, rec.NotRunning()
	case rec.Removing:
		return core.Record{}, partlyRemoved(id)
	case len(rec.Image.Layers) == 0:
		return core.Record{}, fault.New(fault.InvalidState, "the image of box %s is unknown, since the box's record was damaged: remove the box", id)
	}
	if err := errors.Join(k.settleRollback(b), k.settleTaken(b.record())); err != nil {
		return core.Record{}, err
	}
	if err := k.bringUp(b); err != nil {
		k.startFailed(b, err)
		return core.Record{}, err
	}
	return b.record().Record, nil
}

// startFailed writes to a box's record that the box could not be started again.
// If not even that can be written, the box stays as its record says.
func (k *keeper) startFailed(b *box, err error) {
	rec := b.record()
	rec.Fail("start_failed", err)
	if err := k.records.Put(rec.ID, rec, true); err != nil {
		k.log.Error("record a failed start", "box", rec.ID, "error", err)
		return
	}
	b.set(rec)
}

// stopSlack is how much longer than its grace period a stop may take before the
// box is killed from outside.
const stopSlack = 5 * time.Second

func (k *keeper) stop(id string, grace time.Duration) (core.Record, error) {
	b, err := k.lock(id)
	if err != nil {
		return core.Record{}, err
	}
	defer b.change.Unlock()
	return k.stopBox(b, grace)
}

// stopBox stops a box. The caller holds b.change.
func (k *keeper) stopBox(b *box, grace time.Duration) (core.Record, error) {
	id := b.record().ID
	conn, err := k.dialInit(id)
	if fault.Short(err) { // before the stop is noted: to kill the box would be no stop
		k.takeBack(b)
		return core.Record{}, fmt.Errorf("stop box %s: %w", id, err)
	}
	life, ended := k.stopping(b)
	if err == nil {
		defer conn.Close()
	}
	if life == nil && b.isStale() {
		return core.Record{}, unrecorded(id, ended.err)
	}
	if life == nil {
		return core.Record{}, fault.New(fault.InvalidState, "box %s is not running", id)
	}
	if err == nil {
		err = askToStop(conn, grace)
	}
	slack := stopSlack
	switch {
	case wire.CutOff(err): // init has ended, or does what an earlier shim asked for: a second stop gets no answer
		slack += grace
	case err != nil:
		k.log.Warn("a box did not stop in time and is killed", "box", id, "error", err)
		_ = life.handle.Kill()
	}
	select {
	case <-ended.noted:
	case <-time.After(slack):
		groups(life.slot).kill()
		_ = life.handle.Kill()
		<-ended.noted
	}
	if ended.err != nil {
		return core.Record{}, unrecorded(id, ended.err)
	}
	return b.record().Record, nil
}

// takeBack forgets what a box was about to be stopped for if the stop was not begun: this shim
// could not, or an earlier one died. The box is used from then on, so that to roll it back, or
// to remove it, when it ends later would lose files.
func (k *keeper) takeBack(b *box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.rec.TakeBack() {
		return
	}
	if err := k.records.Put(b.rec.ID, b.rec, true); err != nil {
		k.log.Error("take back the stop of a box that was not begun", "box", b.rec.ID, "error", err)
	}
}

// unrecorded is the failure of a stop that was done and could not be written.
func unrecorded(id string, err error) error {
	return fmt.Errorf("box %s has stopped, but its record could not be written: %w", id, err)
}

// stopping writes to the box's record that the box is to stop, so that its end
// counts as a stop even if another shim notes it after this one has died. If the
// record can't be written, the stop goes on all the same. A paused box goes on, so
// that its processes can end. It returns the box's life, nil if it has none, and its
// ending. One that has begun by itself has been noted then: it writes the record too.
func (k *keeper) stopping(b *box) (*life, *ending) {
	life, ended := k.noteStopping(b)
	if life == nil && ended != nil {
		<-ended.noted
	}
	return life, ended
}

func (k *keeper) noteStopping(b *box) (*life, *ending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life != nil && !b.rec.Stopping {
		b.rec.Stopping = true
		if err := k.records.Put(b.rec.ID, b.rec, false); err != nil {
			k.log.Error("record that a box is stopping", "box", b.rec.ID, "error", err)
		}
	}
	if b.life != nil && (b.rec.Status == api.Paused || b.rec.Pausing) {
		groups(b.life.slot).thaw()
	}
	return b.life, b.ended
}

// dialInit connects to a box's init.
func (k *keeper) dialInit(id string) (*wire.Conn, error) {
	dir, err := openPath(record.Dir(k.home, id))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return wire.Dial(dir, wire.InitSocket)
}

// askToStop asks init to end the box's commands within the grace period, and
// waits until init answers that all have ended.
func askToStop(conn *wire.Conn, grace time.Duration) error {
	if err := conn.SetTimeout(grace + stopSlack); err != nil {
		return err
	}
	if err := conn.Send(wire.TypeStop, wire.Stop{GraceMS: grace.Milliseconds()}); err != nil {
		return err
	}
	f, err := conn.Recv()
	f.CloseFDs()
	return err
}

func (k *keeper) remove(id string, force bool) error {
	b, err := k.lock(id)
	if err != nil {
		return err
	}
	defer b.change.Unlock()
	if status := b.record().Status; status.Up() && !force {
		return fault.New(fault.InvalidState, "box %s is %s: stop it first, or use force", id, status)
	}
	k.removing(b)
	return k.removeBox(b)
}

// removing notes that a box is being removed, so that nobody uses what is left of it if that
// breaks off, and the next shim goes on. That of a box that is up is written with its stop.
// A full disk keeps no box from being removed.
func (k *keeper) removing(b *box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rec.Removing = true
	if b.life != nil {
		return
	}
	if err := k.records.Put(b.rec.ID, b.rec, false); err != nil {
		k.log.Warn("note that a box is being removed", "box", b.rec.ID, "error", err)
	}
}

// partlyRemoved refuses what needs the whole disk of a box.
func partlyRemoved(id string) error {
	return fault.New(fault.InvalidState, "the removal of box %s has failed, and a part of its disk may be gone: remove it again", id)
}

// removeBox ends a box and removes it. The caller holds b.change.
func (k *keeper) removeBox(b *box) error {
	b.mu.Lock()
	b.going = true
	b.mu.Unlock()
	if life, ended := k.stopping(b); life != nil {
		if conn, err := k.dialInit(b.record().ID); err == nil {
			_ = askToStop(conn, 0) // so that commands in it end as stopped, not as lost
			_ = conn.Close()
		}
		_ = life.handle.Kill()
		<-ended.noted
	}
	return k.forget(b)
}

// checkRootfs refuses a root file system directory that no box may have as its
// root: one that is the home, lies in it or holds it.
func (k *keeper) checkRootfs(o options.Box) error {
	if o.RootfsPath == "" {
		return nil
	}
	f, err := openRootfs(o)
	if err != nil {
		return err
	}
	defer f.Close()
	real, err := os.Readlink(fdPath(f))
	if err != nil {
		return err
	}
	home, err := filepath.EvalSymlinks(k.home)
	if err != nil {
		return fault.Disk(err, "find the home")
	}
	if overlap(home, real) {
		return fault.New(fault.InvalidArgument, "rootfs_path %s", hostpath.Closed(o.RootfsPath, home))
	}
	return nil
}

// openRootfs opens the directory that is the root file system of a box without an
// image. The caller closes it.
func openRootfs(o options.Box) (*os.File, error) {
	f, err := openHost("rootfs_path", o.RootfsWithin, o.RootfsPath)
	if err != nil {
		return nil, err
	}
	if dir, err := isDir(int(f.Fd())); err != nil || !dir {
		_ = f.Close()
		return nil, fault.New(fault.InvalidArgument, "rootfs_path %s is not a directory", o.RootfsPath)
	}
	return f, nil
}

// overlap reports whether two paths are the same or one lies below the other. It
// recognises a directory also where a path reaches it through another mount.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

// within reports whether path is the directory dir or lies below it.
func within(path, dir string) bool {
	there, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for {
		if here, err := os.Stat(path); err == nil && os.SameFile(here, there) {
			return true
		}
		if path == "/" || path == "." {
			return false
		}
		path = filepath.Dir(path)
	}
}
