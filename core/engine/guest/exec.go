package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/core/ids"
)

// timeoutGrace is the time between SIGTERM and SIGKILL for a command whose
// timeout has passed (contract, section 3).
const timeoutGrace = 2 * time.Second

// exec is one command. Its reader is the connection to which init has passed its
// descriptors.
type exec struct {
	id      string
	kind    kind
	asked   wire.Start // the request; shortened after the end if it is too long to keep
	clocks  *clocks    // of the box
	who     user       // zero if it could not be found out
	created time.Time
	group   group
	files   files
	kills   int           // the box's count of OOM kills when the exec started
	done    chan struct{} // closed once there is a status

	mu      sync.Mutex
	pid     int // 0 if it could not be started
	status  *api.ExitStatus
	ending  api.Reason  // why init ends the exec; empty until init begins to
	last    unix.Signal // the last signal that init sent to end it
	reader  *wire.Conn
	left    chan struct{} // closed once the reader has disconnected
	handed  bool          // the reader has received the descriptors
	streams wire.Streams  // as far as its readers have told
	timeout *clock
	killer  *clock
	held    *api.ExitStatus // the status to publish once the group is empty
	dying   *time.Timer     // bounds how long that status is held back
}

// kind says what an exec is for.
type kind int

const (
	asked   kind = iota // who started it reads its output
	ofMain              // a run of the main command
	ofCheck             // a health check
	ofFiles             // moves files in or out of the box
)

// listed reports whether lists show execs of the kind.
func (k kind) listed() bool { return k == asked || k == ofMain }

// files are init's own ends of an exec's descriptors. They stay open while the
// output may still be wanted, also when the process that reads it has died.
type files struct {
	out, err, in int // -1 for none
	tty          bool
	keepIn       bool // keep in until CloseStdin; otherwise only the reader has it open
}

func (f *files) given() []int {
	var fds []int
	for _, fd := range []int{f.out, f.err, f.in} {
		if fd >= 0 {
			fds = append(fds, fd)
		}
	}
	return fds
}

// start starts a command and returns its exec. For a command that can't be
// started, the exec has ended and its stderr has one line that says why. reader is nil
// for one that nobody reads yet.
func (g *guest) start(r wire.Start, reader *wire.Conn, k kind) (*exec, error) {
	e := &exec{
		id: ids.Exec.New(), kind: k, asked: r, created: time.Now(), clocks: &g.clocks, kills: g.oom.count(), done: make(chan struct{}),
		reader: reader, left: make(chan struct{}),
	}
	if e.asked.Env == nil {
		e.asked.Env = map[string]string{} // nil would mean that it was not kept
	}
	child, err := e.open(g, r)
	if err != nil {
		return nil, fmt.Errorf("make the pipes of a command: %w", err)
	}
	defer child.close()
	why, err := g.spawn(e, r, child)
	if err != nil {
		e.discard()
		return nil, err
	}
	if k.listed() {
		g.started.Add(1)
	}
	if why != nil {
		if k.listed() {
			g.failed.Add(1)
		}
		child.say(why)
		e.finish(why.exited())
	}
	return e, nil
}

// spawn finds out how to start the command and starts it. Like fork it returns why the
// command can't be started, or an error, which counts first, if nothing can be started in
// the box now.
func (g *guest) spawn(e *exec, r wire.Start, child childFiles) (*startFailure, error) {
	if err := g.ready(); err != nil {
		return nil, err
	}
	plan, why := g.plan(r)
	if why != nil {
		return why, g.enlist(e)
	}
	defer plan.close()
	e.noteStart(plan.user, 0)
	if e.files.tty { // so that the user may also open the terminal by its name
		_ = unix.Fchown(child.in, int(plan.user.uid), -1)
	}
	return g.fork(e, plan, r.Cmd, child)
}

// fork starts a process in a group of its own. The reaper can't look for the
// child before fork has registered it, since both hold g.mu for that. A box that is
// paused or stopped before fork holds g.mu gets no process any more: one that is frozen
// before its exec would keep the spawner, and g.mu, until the box is resumed.
func (g *guest) fork(e *exec, plan plan, argv []string, child childFiles) (*startFailure, error) {
	attr := &syscall.ProcAttr{Dir: fdPath(plan.dir), Env: plan.env, Files: child.fds(), Sys: &syscall.SysProcAttr{
		Setsid: true, Setctty: e.files.tty, Credential: plan.user.credential(),
	}}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.add(e); err != nil { // before there is a group, which has a descriptor until the spawner leaves it
		return nil, err
	}
	var err error
	if e.group, err = g.tree.make(e.id); err != nil {
		return cannotRun(fmt.Errorf("make the group of a command: %w", err)), nil
	}
	var pid int
	g.spawner.do(func() {
		if err = e.group.enter(attr.Sys); err == nil {
			pid, err = syscall.ForkExec(plan.path, argv, attr)
		}
		e.group.leave()
	})
	if err != nil {
		_ = e.group.remove()
		return plan.explain(err), nil
	}
	e.noteStart(plan.user, pid)
	g.children[pid] = e
	preferForOOM(pid)
	g.limit(pid)
	e.arm(e.asked.TimeoutMS)
	return nil, nil
}

// noteStart records the result of the start. It locks e.mu, since other
// goroutines may read the exec meanwhile.
func (e *exec) noteStart(who user, pid int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.who, e.pid = who, pid
}

// preferForOOM makes the kernel kill a command rather than init when the box is
// out of memory. A failure here only makes that choice less certain.
func preferForOOM(pid int) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = unix.Write(fd, []byte("500"))
	_ = unix.Close(fd)
}

func (e *exec) arm(ms int64) {
	if ms <= 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timeout = e.clocks.after(time.Duration(ms)*time.Millisecond, func() {
		e.end(api.ReasonTimedOut, timeoutGrace)
	})
}

// end ends the whole process tree: it sends SIGTERM now, and SIGKILL after
// grace. It returns false if the command has ended already.
func (e *exec) end(reason api.Reason, grace time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.runs() {
		return false
	}
	if e.ending == "" {
		e.ending = reason
	}
	e.last = unix.SIGTERM
	_ = e.group.signal(unix.SIGTERM)
	e.killer.stop()
	e.killer = e.clocks.after(grace, e.kill)
	return true
}

// hangUp sends SIGHUP to the whole process tree, as when its terminal has gone.
// Processes that are left after grace are killed, even if the command's own
// process has ended by then.
func (e *exec) hangUp(grace time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pid == 0 {
		return
	}
	_ = e.group.signal(unix.SIGHUP)
	e.clocks.after(grace, e.kill)
}

func (e *exec) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = unix.SIGKILL
	_ = e.group.kill()
}

// exited turns the end of the command's own process into the end of the exec.
func (e *exec) exited(ws unix.WaitStatus, oom *oomKills) {
	end := api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonExited, ExitCode: ws.ExitStatus()}
	switch {
	case ws.Signaled():
		end.Reason, end.Signal, end.ExitCode = api.ReasonSignaled, int(ws.Signal()), 128+int(ws.Signal())
		// If the box had an OOM kill since the exec started, a SIGKILL counts as
		// one too. It may have come from somebody else, while the kernel killed
		// another command: nothing tells the two apart.
		if ws.Signal() == unix.SIGKILL && oom.count() > e.kills {
			end.Reason = api.ReasonOOMKilled
		}
	case ws.ExitStatus() == 0:
		end.Status = api.ExecSucceeded
	}
	e.mu.Lock()
	reason, last := e.ending, e.last
	e.mu.Unlock()
	switch reason {
	case "":
	case api.ReasonBoxStopped: // the rest of the tree still has the grace period of the box's stop
		end.Reason, end.Status = reason, api.ExecFailed
	default: // the rest of the tree is killed before the end is published
		_ = e.group.kill()
		e.finishLater(endedBy(reason, last))
		return
	}
	e.finish(end)
}

// maxDying is how long the end of a command is held back until its killed
// process tree is gone. After that it is published even if the kernel could not
// end some process yet. It is long enough for a killed process to get a CPU to die
// on, on a host with dozens of busy processes for each.
const maxDying = 5 * time.Second

// finishLater holds back the end until the exec's group is empty, or maxDying
// has passed.
func (e *exec) finishLater(end api.ExitStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = &end
	e.dying = time.AfterFunc(maxDying, e.groupGone)
}

// groupGone publishes the held end, if there is one. It is called once no
// process of the exec is left, or maxDying has passed.
func (e *exec) groupGone() {
	e.mu.Lock()
	end := e.held
	e.held = nil
	if e.dying != nil {
		e.dying.Stop()
	}
	e.mu.Unlock()
	if end != nil {
		e.finish(*end)
	}
}

// endedBy returns the exit status of a command that init ended.
func endedBy(reason api.Reason, last unix.Signal) api.ExitStatus {
	status := api.ExecCanceled
	if reason == api.ReasonTimedOut {
		status = api.ExecTimedOut
	}
	return api.ExitStatus{Status: status, Reason: reason, Signal: int(last), ExitCode: 128 + int(last)}
}

// runs tells whether the exec's own process has been started and not yet reaped,
// so that its PID can't be another process's. e.mu is held.
func (e *exec) runs() bool { return e.pid > 0 && e.status == nil && e.held == nil }

// finish records the end and sends it to the reader, if there is one now.
func (e *exec) finish(end api.ExitStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end.FinishedAt = time.Now().UTC()
	e.status = &end
	close(e.done)
	e.forgetText()
	e.timeout.stop()
	e.killer.stop()
	if e.handed {
		_ = e.reader.Send(wire.TypeExited, end)
	}
}

var (
	errTaken    = errors.New("the exec's output has another reader")
	errReleased = errors.New("the exec's output was released")
)

// attach makes conn the reader. It fails while another reader is connected.
func (e *exec) attach(conn *wire.Conn) error {
	e.settle()
	defer e.mu.Unlock()
	if e.reader != nil {
		return errTaken
	}
	if e.files.out < 0 {
		return errReleased
	}
	e.reader, e.left = conn, make(chan struct{})
	return nil
}

// settle locks e.mu. If the reader has hung up, settle waits until its last
// requests have been served and there is no reader any more.
func (e *exec) settle() {
	e.mu.Lock()
	for e.reader != nil && e.reader.HungUp() {
		left := e.left // closed by the reader's goroutine, which will soon notice
		e.mu.Unlock()
		<-left
		e.mu.Lock()
	}
}

// hand sends the descriptors to the reader, and also the end if the command has
// ended already. It returns false if the reader has gone before it got them.
func (e *exec) hand(g *guest, conn *wire.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	started := e.record(g)
	started.End, started.Stdin, started.Streams = nil, e.files.in >= 0, e.streams
	if conn.Send(wire.TypeStarted, started, e.files.given()...) != nil {
		return false
	}
	e.handed = true
	if !e.files.keepIn { // so that the command reads EOF once the reader closes its own
		closeFD(&e.files.in)
	}
	if e.status != nil {
		_ = conn.Send(wire.TypeExited, e.status) // who has gone since may attach again
	}
	return true
}

func (e *exec) detach() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reader, e.handed = nil, false
	close(e.left)
	e.forgetText()
}

func (e *exec) closeStdin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	closeFD(&e.files.in)
}

// discard drops the output. Anything that a background child still writes is
// read and dropped, so that the child neither blocks nor dies of SIGPIPE.
func (e *exec) discard() {
	e.mu.Lock()
	f := e.files
	e.files = files{out: -1, err: -1, in: -1}
	e.mu.Unlock()
	closeFD(&f.in)
	if f.tty { // a terminal is closed instead, which hangs it up
		closeFD(&f.out)
		return
	}
	if f.err >= 0 {
		go drop(f.err)
	}
	if f.out >= 0 {
		go drop(f.out)
	}
}

func drop(fd int) {
	f := os.NewFile(uintptr(fd), "output")
	_, _ = io.Copy(onlyWriter{io.Discard}, f)
	_ = f.Close()
}

// onlyWriter keeps io.Copy from asking the discarder for a large buffer.
type onlyWriter struct{ io.Writer }

func closeFD(fd *int) {
	if *fd >= 0 {
		_ = unix.Close(*fd)
		*fd = -1
	}
}

// errStopping is the failure of a request to a box that is stopping.
var errStopping = errors.New("the box is stopping")

// enlist is add for who does not hold g.mu.
func (g *guest) enlist(e *exec) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.add(e)
}

// add remembers an exec, if it is of a kind that is listed. If there are too many, it
// forgets the oldest ones that have ended and have no reader. It fails if nothing can be
// started in the box now. g.mu is held.
func (g *guest) add(e *exec) error {
	if err := g.busy(); err != nil || !e.kind.listed() {
		return err
	}
	g.execs[e.id] = e
	g.order = append(g.order, e)
	for i := 0; len(g.order) > wire.MaxExecs && i < len(g.order); i++ {
		if old := g.order[i]; old.over() {
			delete(g.execs, old.id)
			g.order = append(g.order[:i], g.order[i+1:]...)
			old.discard()
		}
	}
	return nil
}

// over tells whether the exec has ended and has no reader.
func (e *exec) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status != nil && e.reader == nil
}
