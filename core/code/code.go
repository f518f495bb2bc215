// Package code runs code piece by piece in contexts of boxes, which keep what the code
// has defined.
//
// A context is an exec of a box: a process of the language that runs a kernel, a program
// of ours in that language, which needs nothing else of the image. The box's init holds
// it, so it outlives the program that made it, and every program of the home finds it in
// the list of the box's execs by its last argument. No other record of it is kept.
//
// # How a kernel is spoken with
//
// The kernel reads its own source from its standard input, and then requests, which are
// fields that end in NUL. Each request has a nonce of 32 characters, the number of variables of
// the environment, these as NAME=VALUE, and the code.
//
// What the code prints goes straight to the standard output and the standard error of the
// exec, from whichever process and library. The kernel's answers, which are JSON, stand in
// between on standard output, in pieces of at most 4,096 bytes, which pipes keep whole:
// the byte 0x1e, the nonce, the size of the payload in four hexadecimal digits, "+" or,
// for the last piece of an answer, ".", and the payload. Only the nonce tells a piece from
// what is printed, and it is another one for each run. On standard error empty pieces mark
// the beginning and the end of a run. What stands before the beginning was printed between
// two runs and is dropped.
//
// A box that knows the nonce may lie in all of that, and harms the runs of its own contexts.
package code

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/feed"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// MaxContexts is how many contexts a box may have (contract, section 3).
const MaxContexts = 64

// Contexts are the contexts of boxes, as one program uses them. Runs in one context wait
// for each other. It is safe for concurrent use.
type Contexts struct {
	turns    turns
	restarts singleflight.Group // by what turns are taken for
	runners  sync.Map           // likewise, the runs that have begun
}

// New returns the contexts. They hold nothing that must be closed.
func New() *Contexts { return &Contexts{turns: turns{of: map[string][]turn{}}} }

// Run is a run of code: its events, behind the last of which Next returns io.EOF. Close
// ends it, and interrupts the code if it still runs. Code that does not end then is
// killed, and its context restarted.
type Run = feed.Feed[api.CodeEvent]

// unread is how many events of a run wait to be taken. Each has up to [MaxFrame] bytes.
const unread = 4

// Run runs code in a context. It returns once the code runs: it waits for the runs in the
// same context that were asked for before. The end of ctx interrupts the code, as Close
// does; the caller calls Close all the same. Errors: BoxNotFound, InvalidState (the box
// does not run; another program runs code in the context), ContextNotFound,
// InvalidArgument, Execution (the box does not have the language), ResourceExhausted (too
// many runs wait), Timeout (the language does not start), Engine.
func (c *Contexts) Run(ctx context.Context, box *core.Box, o options.Code) (*Run, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	id := cmp.Or(o.Context, string(o.Language), string(api.Python))
	if _, err := box.Awake(ctx); err != nil {
		return nil, err
	}
	leave, err := c.turns.take(ctx, place(box, id))
	if err != nil {
		return nil, err
	}
	r, err := c.begin(ctx, box, id, o)
	if err != nil {
		leave()
		return nil, err
	}
	c.runners.Store(place(box, id), r)
	stop := context.AfterFunc(ctx, r.leave)
	return feed.New(unread, r.next, r.leave, func() {
		stop()
		r.close()
		c.runners.Delete(place(box, id))
		leave()
	}), nil
}

// place names a context among those of all boxes.
func place(box *core.Box, id string) string { return box.ID() + "/" + id }

// begin has a context begin to run code. A context that turns out to have ended just now
// is looked for once more.
func (c *Contexts) begin(ctx context.Context, box *core.Box, id string, o options.Code) (*runner, error) {
	for again := false; ; again = true {
		k, err := c.open(ctx, box, id)
		if err != nil {
			return nil, err
		}
		if o.Language != "" && o.Language != k.about.Language {
			return nil, joined(fault.New(fault.InvalidArgument, "context %s runs %s and not %s: name another context, or leave the language out", id, k.about.Language, o.Language), k.Detach())
		}
		r := newRunner(box, k)
		if err = r.begin(ctx, o); err == nil {
			return r, nil
		}
		r.close()
		if k.fresh || again || !r.dead() {
			return nil, err
		}
	}
}

// open attaches to the process of a context. The context that a language has of its own
// is made if there is none. Errors: ContextNotFound, InvalidState (it is in use).
func (c *Contexts) open(ctx context.Context, box *core.Box, id string) (kernel, error) {
	all, err := c.List(ctx, box)
	if err != nil {
		return kernel{}, err
	}
	about, err := find(all, box.ID(), id)
	own := api.Language(id)
	switch {
	case err == nil:
		return attach(ctx, box, about)
	case !own.Known():
		return kernel{}, err
	}
	k, err := start(ctx, box, id, options.CodeContext{Language: own})
	if err != nil {
		return kernel{}, err
	}
	if about, err = c.first(ctx, box, k); err != nil || about.ExecID == k.about.ExecID {
		return k, err
	}
	return attach(ctx, box, about)
}

// first returns the context whose process was just started. Where another program has
// started one for the same context in the same moment, that is the process that was started
// first, and the other one is ended. Errors: those of List; then it is ended, too.
func (c *Contexts) first(ctx context.Context, box *core.Box, k kernel) (api.CodeContext, error) {
	about, err := c.Get(ctx, box, k.about.ID)
	switch {
	case fault.Is(err, fault.ContextNotFound): // it has ended, which its reader tells
		return k.about, nil
	case err == nil && about.ExecID == k.about.ExecID:
		return about, nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), dying)
	defer cancel()
	_, _ = box.Cancel(late, k.about.ExecID, 0) // if it fails, the process has ended, or will with its box
	_ = k.Close()
	return about, err
}

// Create makes a context. Errors: BoxNotFound, InvalidState (the box does not run),
// InvalidArgument, Execution (the box does not have the language), ResourceExhausted (it
// has [MaxContexts]), Engine.
func (c *Contexts) Create(ctx context.Context, box *core.Box, o options.CodeContext) (api.CodeContext, error) {
	if err := o.Check(); err != nil {
		return api.CodeContext{}, err
	}
	o.Language = cmp.Or(o.Language, api.Python)
	if _, err := box.Awake(ctx); err != nil {
		return api.CodeContext{}, err
	}
	all, err := c.List(ctx, box)
	if err != nil {
		return api.CodeContext{}, err
	}
	if len(all) >= MaxContexts {
		return api.CodeContext{}, fault.New(fault.ResourceExhausted, "box %s has %d contexts, the most that it may have: remove one", box.ID(), len(all))
	}
	return c.ready(ctx, box, ids.Context.New(), o)
}

// ready starts the process of a context and waits until it can run code.
func (c *Contexts) ready(ctx context.Context, box *core.Box, id string, o options.CodeContext) (api.CodeContext, error) {
	k, err := start(ctx, box, id, o)
	if err != nil {
		return api.CodeContext{}, err
	}
	r := newRunner(box, k)
	defer r.close()
	if err := r.begin(ctx, options.Code{}); err != nil {
		return api.CodeContext{}, err
	}
	for {
		if e, err := r.next(); err != nil || e.Type == api.CodeEnd {
			return k.about, err
		}
	}
}

// List returns the contexts of a box, newest first. Errors: BoxNotFound, InvalidState
// (the box does not run), Engine.
func (c *Contexts) List(ctx context.Context, box *core.Box) ([]api.CodeContext, error) {
	execs, err := box.Execs(ctx)
	if err != nil {
		return nil, err
	}
	all := []api.CodeContext{}
	for _, e := range execs {
		if about, ok := contextOf(e); ok && e.Status == api.ExecRunning {
			all = append(all, about)
		}
	}
	return all, nil
}

// Get returns a context. Errors: those of List, ContextNotFound.
func (c *Contexts) Get(ctx context.Context, box *core.Box, id string) (api.CodeContext, error) {
	all, err := c.List(ctx, box)
	if err != nil {
		return api.CodeContext{}, err
	}
	return find(all, box.ID(), id)
}

// find returns a context of the list. Of two that were made in the same moment it is the
// older one; see first.
func find(all []api.CodeContext, box, id string) (api.CodeContext, error) {
	for _, about := range slices.Backward(all) {
		if about.ID == id {
			return about, nil
		}
	}
	return api.CodeContext{}, fault.New(fault.ContextNotFound, "box %s has no context %.40q: it was removed, or its process has ended", box, id)
}

// Interrupt sends SIGINT to the process of a context and to its children, which
// interrupts the code that it runs. It does nothing between two runs. A language that
// loses a signal now and then gets it once more after a second, where the code is one of a
// Run of c that has not ended. Errors: those of Get.
func (c *Contexts) Interrupt(ctx context.Context, box *core.Box, id string) (api.CodeContext, error) {
	about, err := c.Get(ctx, box, id)
	if err != nil {
		return api.CodeContext{}, err
	}
	r, ok := c.runners.Load(place(box, id)) // before the signal: the run may end then, and the next one begin
	_, err = box.Interrupt(ctx, about.ExecID)
	if ok && programs[about.Language].deaf {
		r := r.(*runner)
		r.after(grace/2, r.again)
	}
	return about, gone(err, box, id)
}

// Remove ends a context with all of its processes. A run in it is lost. Errors: those of
// Get.
func (c *Contexts) Remove(ctx context.Context, box *core.Box, id string) error {
	about, err := c.Get(ctx, box, id)
	if err != nil {
		return err
	}
	_, err = box.Cancel(ctx, about.ExecID, 0)
	return gone(err, box, id)
}

// gone returns ContextNotFound in place of the error that a context's exec has ended.
func gone(err error, box *core.Box, id string) error {
	if fault.Is(err, fault.ExecNotFound) {
		_, err = find(nil, box.ID(), id)
	}
	return err
}

// Restart ends the processes of a context and starts it anew, with the environment, user
// and working directory that it was made with, and nothing of what code had defined. A
// run in it is lost; those that wait for it run in the new one. One that comes while
// another goes on has that one's outcome. Once the processes are being ended, it goes on
// when ctx ends. Errors: those of Get and Create, InvalidState (the box is paused), Timeout
// (nobody reads the end of the run that was lost).
func (c *Contexts) Restart(ctx context.Context, box *core.Box, id string) (api.CodeContext, error) {
	for {
		about, err, shared := c.restarts.Do(place(box, id), func() (any, error) { return c.restart(ctx, box, id) })
		if shared && fault.Is(err, fault.Canceled) && ctx.Err() == nil { // it was another's
			continue
		}
		return about.(api.CodeContext), err //nolint:forcetypeassert // restart returns one
	}
}

func (c *Contexts) restart(ctx context.Context, box *core.Box, id string) (api.CodeContext, error) {
	about, err := c.Get(ctx, box, id)
	if err != nil {
		return api.CodeContext{}, err
	}
	rec, err := box.ExecRecord(ctx, about.ExecID)
	if err != nil {
		return api.CodeContext{}, gone(err, box, id)
	}
	mine, leave := c.turns.next(place(box, id)) // before the run ends: those that wait would find no context
	defer leave()
	ctx = context.WithoutCancel(ctx)
	late, cancel := context.WithTimeout(ctx, 2*dying) // for the end of the processes, and of the run
	defer cancel()
	if _, err := box.Cancel(late, about.ExecID, 0); err != nil {
		if now, unknown := box.ExecRecord(late, about.ExecID); unknown != nil || now.Status == api.ExecRunning { // as in a paused box
			return api.CodeContext{}, gone(err, box, id)
		} // else it has just ended by itself
	}
	waited := mine.wait(late)
	if now, err := c.Get(ctx, box, id); err == nil && now.ExecID != about.ExecID {
		return now, nil // a run that had its turn before has started it anew
	}
	if waited != nil {
		return api.CodeContext{}, fault.New(fault.Timeout, "context %s has ended and was not started again: nobody reads the end of the run that was lost", id)
	}
	return c.ready(ctx, box, id, like(rec, about))
}

// like returns the options of a context that is like the one whose exec is rec.
func like(rec api.Exec, about api.CodeContext) options.CodeContext {
	return options.CodeContext{Language: about.Language, WorkingDir: rec.WorkingDir, User: rec.User, Env: rec.Env}
}

// newRunner returns a runner for one run in a context.
func newRunner(box *core.Box, k kernel) *runner {
	ctx, abandon := context.WithCancel(context.Background())
	return &runner{box: box, kernel: k, reading: ctx, abandon: abandon, began: time.Now(), written: make(chan struct{})}
}

// joined adds to err what went wrong after it.
func joined(err, then error) error {
	if then != nil {
		return fmt.Errorf("%w; %w", err, then)
	}
	return err
}
