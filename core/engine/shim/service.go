package shim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/spool"
)

// service is the connection to a box's init on which init tells how the box's main command
// is doing. init keeps the command running; the shim keeps its output, writes its state to
// the box's record, and stops the box when that was asked for.
type service struct {
	k    *keeper
	b    *box
	life *life
	conn *wire.Conn
	runs int // how many runs have begun, as far as was told; 0 before the first state
}

// mainOf returns what an init needs to know of the main command of its box, and whether
// there is one.
func mainOf(rec record.Box) (wire.Supervise, bool) {
	o := rec.Options
	if len(o.Command) == 0 {
		return wire.Supervise{}, false
	}
	word, most, _ := options.ParseRestart(o.Restart) // it was checked when the box was made
	s := wire.Supervise{Cmd: o.Command, Restart: word, MaxRestarts: most, StopSignal: stopSignal(rec.Image.StopSignal)}
	if h := o.HealthCheck; h != nil && h.Test[0] != api.HealthNone {
		s.Health = h
	}
	return s, true
}

// stopSignal returns the number of a signal that an image names, such as SIGQUIT, QUIT, 3
// or SIGRTMIN+3. It returns 0 for SIGTERM, and for what is no signal.
func stopSignal(name string) int {
	const realTime = 34 // SIGRTMIN of all C libraries
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	n, err := strconv.Atoi(name)
	if rest, ok := strings.CutPrefix(name, "RTMIN+"); ok {
		n, err = strconv.Atoi(rest)
		n += realTime
	} else if err != nil {
		n, err = int(unix.SignalNum("SIG"+name)), nil
	}
	if err != nil || n < 1 || n > 64 || n == int(unix.SIGTERM) {
		return 0
	}
	return n
}

// serveMain has a box's init start the main command, if the box has one and it was not
// started before, and returns when its output is kept and the record has its state. From
// then on it follows the command for as long as the life lasts.
func (k *keeper) serveMain(b *box, f *life) error {
	asked, has := mainOf(b.record())
	if !has {
		return nil
	}
	s := &service{k: k, b: b, life: f}
	if err := s.connect(asked); err != nil {
		return fmt.Errorf("start the main command of box %s: %w", b.record().ID, err)
	}
	done := make(chan struct{})
	b.mu.Lock()
	f.served = done
	b.mu.Unlock()
	go func() {
		defer close(done)
		s.follow(asked)
	}()
	return nil
}

// openOutputs opens what main commands of the home have printed.
func openOutputs(home string, log *slog.Logger) *spool.Store {
	return spool.Open(spool.Config{Dir: record.OutputDir(home), Limit: record.KeptRun, Keep: record.KeptRuns, Log: log})
}

// serveAgain follows the main command of a box that an earlier shim has started.
func (k *keeper) serveAgain(b *box, f *life) {
	if len(b.record().Options.Command) == 0 {
		return
	}
	k.idle.enter()
	go func() {
		defer k.idle.leave()
		id := b.record().ID
		if err := k.outputs.AdoptBox(context.Background(), k.mains, id); err != nil {
			k.log.Error("take over the output of a main command", "box", id, "error", err)
		}
		for {
			err := k.serveMain(b, f)
			if err == nil || f.init.EndsWithin(serveRetry) {
				return
			}
			k.log.Error("follow a main command", "box", id, "error", err)
		}
	}()
}

// serveRetry is the time between two tries to reach the init of a box that does not
// answer.
const serveRetry = time.Second

// connect asks init to serve the main command, and takes its first answer into account.
func (s *service) connect(asked wire.Supervise) (err error) {
	if s.conn, err = s.k.dialPolled(s.b.record().ID); err != nil {
		return fault.Wrap(fault.Engine, err, "reach the init of the box")
	}
	late := time.AfterFunc(telling, s.conn.Cut)
	defer late.Stop()
	state, err := s.ask(asked)
	if err != nil {
		_ = s.conn.Close()
		return fault.Wrap(fault.Engine, err, "the init of the box does not answer")
	}
	s.take(state)
	return nil
}

// dialPolled connects to a box's init for what may wait long.
func (k *keeper) dialPolled(id string) (*wire.Conn, error) {
	dir, err := openPath(record.Dir(k.home, id))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return wire.DialPolled(dir, wire.InitSocket)
}

func (s *service) ask(asked wire.Supervise) (wire.Main, error) {
	if err := s.conn.Send(wire.TypeSupervise, asked); err != nil {
		return wire.Main{}, err
	}
	return s.next()
}

// next waits for the next state.
func (s *service) next() (m wire.Main, err error) {
	f, err := s.conn.Recv()
	f.CloseFDs()
	if err == nil && f.Type != wire.TypeMain {
		err = wire.ErrProtocol
	}
	if err == nil {
		err = f.Decode(&m)
	}
	if err == nil {
		err = m.Check()
	}
	if id := m.Command.ExecID; err == nil && id != "" && !ids.Exec.Valid(id) {
		err = wire.ErrProtocol
	}
	return m, err
}

// What a box's init may tell of its main command: some states at once, and then one at a
// time. Each is written to the record. An init that has been replaced by a hostile one
// would keep the host busy otherwise; an honest one tells less.
const (
	statesAtOnce = 64
	stateTime    = 20 * time.Millisecond
)

// follow takes the states into account that init tells, until it has ended. A connection
// that breaks off is made again.
func (s *service) follow(asked wire.Supervise) {
	told := rate.NewLimiter(rate.Every(stateTime), statesAtOnce)
	for {
		state, err := s.next()
		if wait := told.Reserve().Delay(); wait > 0 { // nothing is read meanwhile, so that init waits too
			_ = s.life.init.EndsWithin(wait) // its end is taken into account below
		}
		if err == nil {
			s.take(state)
			continue
		}
		_ = s.conn.Close()
		for err != nil {
			if s.life.init.EndsWithin(serveRetry) {
				return
			}
			err = s.connect(asked)
		}
	}
}

// take takes a state into account: first the output of a new run is kept, so that who reads
// of the run in the record finds its output.
func (s *service) take(m wire.Main) {
	id := s.b.record().ID
	if runs := m.Command.Restarts + 1; m.Command.ExecID != "" && runs != s.runs {
		s.keep(id, m.Command.ExecID, runs-s.runs > 1)
		s.runs = runs
	}
	err := s.k.note(s.b, func(rec *record.Box) { rec.Command, rec.Health = &m.Command, m.Health })
	if err != nil && !fault.Is(err, fault.InvalidState) { // it has ended
		s.k.log.Error("record the state of a main command", "box", id, "error", err)
	}
	if m.Command.Status == api.CommandEnded && s.b.record().Options.StopWithCommand {
		s.k.idle.enter()
		go func() {
			defer s.k.idle.leave()
			s.k.stopCompleted(id, s.life)
		}()
	}
}

// keep has the output of a run of the main command kept, and with all that of the runs
// before it that init still knows. Where that fails, the output waits in the command's
// pipes for the next shim.
func (s *service) keep(box, exec string, all bool) {
	ctx, cancel := context.WithTimeout(context.Background(), telling)
	defer cancel()
	runs := []string{exec}
	if all {
		known, err := s.k.mains.List(ctx, box)
		if err == nil {
			runs = nil
		}
		for _, run := range known {
			runs = append(runs, run.ID)
		}
	}
	for _, run := range runs {
		if _, err := s.k.outputs.Get(box, run); err == nil {
			continue
		}
		command, err := s.k.mains.Attach(ctx, box, run, core.Position{})
		if err == nil {
			_, err = s.k.outputs.Start(command, false)
		}
		if err != nil {
			s.k.log.Error("keep the output of a main command", "box", box, "exec", run, "error", err)
		}
	}
}

// stopCompleted stops a box whose main command has ended for good, unless another life of
// it has begun. What fails is tried again each second.
func (k *keeper) stopCompleted(id string, f *life) {
	for {
		err := k.stopLife(id, f)
		if err == nil || fault.Is(err, fault.InvalidState) || fault.Is(err, fault.BoxNotFound) || f.init.EndsWithin(serveRetry) {
			return
		}
		k.log.Error("stop a box whose main command has ended", "box", id, "error", err)
	}
}

func (k *keeper) stopLife(id string, f *life) error {
	b, err := k.lock(id)
	if err != nil {
		return err
	}
	defer b.change.Unlock()
	b.mu.Lock()
	current := b.life == f
	b.mu.Unlock()
	if !current {
		return nil
	}
	if err := k.note(b, func(rec *record.Box) { rec.Completed = true }); err != nil {
		return err
	}
	_, err = k.stopBox(b, core.DefaultGrace)
	return err
}

// awaitServed waits until the last state of a life that has ended was taken into account.
func (b *box) awaitServed(f *life) {
	b.mu.Lock()
	served := f.served
	b.mu.Unlock()
	if served != nil {
		<-served
	}
}

// outputTime bounds how long the removal of a box waits for the end of what its main
// command has printed.
const outputTime = time.Second

// forgetOutput removes what the main command of a box has printed. Who reads it at that
// moment is told that it has ended.
func (k *keeper) forgetOutput(rec record.Box) {
	if len(rec.Options.Command) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), outputTime)
	defer cancel()
	if err := k.outputs.AwaitRecords(ctx, rec.ID); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		k.log.Warn("wait for the output of a main command", "box", rec.ID, "error", err)
	}
	k.outputs.Remove(rec.ID)
}
