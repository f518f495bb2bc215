package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/sockets"
)

// Descriptors that a shim is started with.
const (
	homeFD    = 3 // the directory of the home
	programFD = 4 // sandbox-init
	readyFD   = 5 // the shim writes one line to it: that it serves, or why it can't
)

// lingering is how long a shim stays after the last box has ended and the last
// client has left.
const lingering = 5 * time.Second

// init keeps the main thread for Serve. A goroutine that moves its thread into a
// box's groups ends together with that thread (see groups.enter). The main
// thread must not be used for that: it can't end, and cgroups take its group for
// that of the whole process.
func init() { runtime.LockOSThread() }

// Serve runs the shim of the home at the given path. It returns nil once the shim
// is not needed any more, or the error that ended it. The process must have been
// started with the three descriptors above. Serve owns them.
func Serve(home string) error { return serveIn(home, false) }

// ServeUser runs the shim of the home of a user who is not root, in the namespaces that
// [namespaces.Enter] has entered. Else it is like Serve.
func ServeUser(home string) error { return serveIn(home, true) }

func serveIn(home string, user bool) error {
	asUser = user
	ended := make(chan error)
	ready := os.NewFile(readyFD, "ready")
	go func() { ended <- serve(home, ready) }()
	err := <-ended
	if err != nil { // the starter reads it only if it came before the shim was ready
		e := fault.Of(err)
		_ = json.NewEncoder(ready).Encode(wire.Error{Kind: e.Kind, Message: e.Message})
	}
	return err
}

func serve(home string, ready *os.File) error {
	dir := os.NewFile(homeFD, home)
	// libcontainer passes this variable on to the program that makes a box from
	// inside. One CPU is enough for it, as it does one thing after another.
	if err := os.Setenv("GOMAXPROCS", "1"); err != nil {
		return err
	}
	log, err := openLog(home)
	if err != nil {
		return err
	}
	// Wait for an earlier shim that may be about to end. While a shim serves,
	// clients find it and start no other one.
	held, err := filelock.Exclusive(context.Background(), filepath.Join(home, "engine", wire.ShimLock))
	if err != nil {
		return err
	}
	defer held.Close()
	if err := errors.Join(openStage(), openRoots()); err != nil {
		return err
	}
	own := ownGroup(home)
	if asUser { // who has no others than these
		if err := takeGiven(log); err != nil {
			return err
		}
	}
	if err := own.enter(); err != nil {
		log.Warn("the shim stays in the cgroup of the program that started it", "error", err)
	}
	defer own.leave()
	if !asUser {
		if err := takeGroups(); err != nil {
			return err
		}
	}
	host, leave, err := hostNetwork(home, log)
	if err != nil {
		return err
	}
	k := &keeper{
		home: home, log: log,
		launcher: launcher{home: home, state: filepath.Join(home, "engine", "state"), program: os.NewFile(programFD, "sandbox-init"), network: host, cpus: &cpuUse{}, unclean: &sync.Map{}, log: log},
		records:  record.Open(home), idle: newIdle(lingering), queue: newQueue(), expiries: newExpiries(home, log),
		mains: engine.MainsOf(home), outputs: openOutputs(home, log),
		boxes: map[string]*box{}, owners: map[process.Identity]bool{},
	}
	k.pool = newPool(k.fill)
	k.idle.enter() // until it serves: what takes long to load must not end it
	if err := k.load(); err != nil {
		return err
	}
	k.flush() // an earlier shim may have ended before it had flushed
	err = k.serve(dir, ready)
	k.closePool()
	k.outputs.Close()
	return errors.Join(err, k.launcher.network.Leave(), leave())
}

// serve answers clients until the shim has been idle for a while.
func (k *keeper) serve(home, ready *os.File) error {
	dir, err := openPath(fdPath(home) + "/engine")
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, err := sockets.Replace(dir, wire.ShimSocket)
	if err != nil {
		return err
	}
	l, err := wire.NewListener(fd)
	if err != nil {
		return err
	}
	k.idle.leave()
	_, _ = ready.WriteString(wire.Ready)
	_ = ready.Close()
	go func() {
		<-k.idle.over
		// New clients find no socket and start another shim. A client that
		// connected just before is disconnected and does the same.
		_ = unix.Unlinkat(int(dir.Fd()), wire.ShimSocket, 0)
		_ = l.Close()
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil
		}
		k.admit(conn)
	}
}

// admit serves a client in the background. One that comes when the shim is about to go is
// disconnected before it is greeted, and starts another shim: its request would break off.
func (k *keeper) admit(conn *wire.Conn) {
	if !k.idle.enter() {
		_ = conn.Close()
		return
	}
	go func() {
		defer k.idle.leave()
		k.handle(conn)
	}()
}

// handle serves one client.
func (k *keeper) handle(conn *wire.Conn) {
	defer conn.Close()
	k.pool.join(conn)
	settles := k.converse(conn)
	k.pool.part(conn)
	if settles {
		k.pool.settle()
		_ = conn.Send(wire.TypeDone, nil)
	}
}

// converse answers the requests of one client, one after another, until the client hangs
// up, or says that it will and wants to hear when nothing is being made for it any more.
func (k *keeper) converse(conn *wire.Conn) (settles bool) {
	if err := conn.Send(wire.TypeHello, wire.Hello{Protocol: wire.Protocol, Version: core.Version, PID: os.Getpid()}); err != nil {
		return false
	}
	for {
		f, err := conn.Recv()
		if err != nil || f.Type == wire.TypeSettle {
			f.CloseFDs()
			return err == nil
		}
		k.pool.enter()
		t, reply, err := k.answer(conn, f)
		k.pool.leave()
		f.CloseFDs()
		if err != nil {
			e := fault.Of(err)
			t, reply = wire.TypeError, wire.Error{Kind: e.Kind, Message: e.Message}
			k.log.Info("request failed", "type", f.Type, "error", err)
		}
		made, _ := reply.(descriptors)
		if made != nil {
			reply = nil
		}
		err = conn.Send(t, reply, made...)
		made.close()
		if err != nil {
			return false
		}
	}
}

// descriptors are a reply that consists of open files.
type descriptors []int

func (d descriptors) close() {
	for _, fd := range d {
		_ = unix.Close(fd)
	}
}

// answer carries out one request and returns the reply to it.
func (k *keeper) answer(conn *wire.Conn, f wire.Frame) (wire.Type, any, error) {
	var r wire.BoxRequest
	switch f.Type {
	case wire.TypeCreate:
		rec, err := k.answerCreate(conn, f)
		return wire.TypeRecord, rec, err
	case wire.TypeUnpack:
		return wire.TypeDone, nil, k.unpack(f)
	case wire.TypeDiscard:
		return wire.TypeDone, nil, k.discardLayer(f)
	case wire.TypePack:
		return wire.TypeDone, nil, k.pack(f)
	case wire.TypeSweep:
		return k.answerSweep(f)
	case wire.TypeFlush:
		k.flush()
		return wire.TypeDone, nil, nil
	case wire.TypeUpdateBox:
		return k.answerUpdate(f)
	case wire.TypeSockets:
		made, err := k.answerSockets(f)
		return wire.TypeDone, made, err
	case wire.TypeOpenDisks:
		opened, err := k.answerOpenDisks(f)
		return wire.TypeDone, opened, err
	case wire.TypeSnapshot:
		taken, err := k.answerSnapshot(f)
		return wire.TypeTaken, taken, err
	case wire.TypeRollback:
		rec, err := k.answerRollback(conn, f)
		return wire.TypeRecord, rec, err
	case wire.TypeStartBox, wire.TypeStopBox, wire.TypeRemoveBox, wire.TypePauseBox, wire.TypeResumeBox:
		if err := f.Decode(&r); err != nil {
			return 0, nil, err
		}
	default:
		return 0, nil, fault.New(fault.Engine, "the shim does not know request %d", f.Type)
	}
	switch f.Type {
	case wire.TypeStartBox:
		rec, err := k.answerStart(conn, r.ID)
		return wire.TypeRecord, rec, err
	case wire.TypeStopBox:
		rec, err := k.stop(r.ID, time.Duration(r.GraceMS)*time.Millisecond)
		return wire.TypeRecord, rec, err
	case wire.TypePauseBox:
		rec, err := k.pause(r.ID, r.Reclaim)
		return wire.TypeRecord, rec, err
	case wire.TypeResumeBox:
		rec, err := k.resume(r.ID)
		return wire.TypeRecord, rec, err
	}
	return wire.TypeDone, nil, k.remove(r.ID, r.Force)
}

func (k *keeper) answerUpdate(f wire.Frame) (wire.Type, any, error) {
	var r wire.UpdateBox
	if err := f.Decode(&r); err != nil {
		return 0, nil, err
	}
	rec, err := k.update(r)
	return wire.TypeRecord, rec, err
}

// answerSweep sweeps the home and replies with what was done. Where a part of the
// sweep failed, the reply holds the error too.
func (k *keeper) answerSweep(f wire.Frame) (wire.Type, any, error) {
	var r wire.Sweep
	if err := f.Decode(&r); err != nil {
		return 0, nil, err
	}
	swept, err := k.sweep(time.Duration(min(max(r.OlderMS, 0), maxOlderMS)) * time.Millisecond)
	if err != nil {
		e := fault.Of(err)
		swept.Error = &wire.Error{Kind: e.Kind, Message: e.Message}
		k.log.Error("sweep", "error", err)
	}
	return wire.TypeSwept, swept, nil
}

// maxOlderMS is a hundred years in milliseconds, the longest age that a sweep
// takes.
const maxOlderMS = 100 * 366 * 24 * 3600 * 1000

func (k *keeper) answerCreate(conn *wire.Conn, f wire.Frame) (core.Record, error) {
	var asked wire.Create
	if err := f.Decode(&asked); err != nil {
		return core.Record{}, err
	}
	if err := k.queue.enter(conn); err != nil {
		return core.Record{}, err
	}
	defer k.queue.leave()
	var owner process.Identity
	if asked.Owned {
		pid, err := conn.Peer()
		if err != nil {
			return core.Record{}, err
		}
		if owner, err = process.Of(pid); err != nil {
			return core.Record{}, fmt.Errorf("find the process of the client: %w", err)
		}
	}
	req := record.FromWire(asked)
	if k.pool.resize(asked.Pool) && k.find(req.ID) == nil { // a create that is repeated needs no spare
		k.makeFor(req)
	}
	rec, err := k.create(req, owner, conn.HungUp)
	if k.relieve(err) {
		rec, err = k.create(req, owner, conn.HungUp)
	}
	return rec, err
}

func (k *keeper) answerStart(conn *wire.Conn, id string) (core.Record, error) {
	if err := k.queue.enter(conn); err != nil {
		return core.Record{}, err
	}
	defer k.queue.leave()
	rec, err := k.start(id)
	if k.relieve(err) {
		rec, err = k.start(id)
	}
	return rec, err
}

// openLog opens the shim's log in the home, and empties it if it has grown large.
func openLog(home string) (*slog.Logger, error) {
	const large = 1 << 20
	name := filepath.Join(home, "engine", wire.ShimLog)
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if st, err := os.Stat(name); err == nil && st.Size() > large {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	// Standard error goes to the log too, for what the Go runtime prints before
	// it crashes.
	if err := unix.Dup3(int(f.Fd()), 2, 0); err != nil {
		return nil, err
	}
	return slog.New(slog.NewTextHandler(f, nil)), nil
}

// idle counts what the shim is needed for: running boxes, clients and work in the
// background. It tells when there has been nothing for a while.
type idle struct {
	over chan struct{} // closed when the count has been 0 for a while

	mu    sync.Mutex
	n     int
	timer *time.Timer
}

func newIdle(after time.Duration) *idle {
	i := &idle{over: make(chan struct{})}
	i.timer = time.AfterFunc(after, i.end)
	return i
}

func (i *idle) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.n == 0 {
		close(i.over)
		i.n = 1 << 30 // so that the count never is 0 again and over is closed once
	}
}

// enter returns false if it comes too late: the shim goes all the same.
func (i *idle) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n++
	i.timer.Stop()
	select {
	case <-i.over:
		return false
	default:
		return true
	}
}

func (i *idle) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.n--; i.n == 0 {
		i.timer.Reset(lingering)
	}
}
