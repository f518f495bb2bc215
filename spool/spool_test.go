package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/leak"
	"sandbox/test/members"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		pumpChild()
		return
	}
	leak.Main(m)
}

// home is a store, and a box to run commands in.
type home struct {
	*Store
	rt  *core.Runtime
	box *core.Box
}

func newHome(t *testing.T, limit int64) *home {
	t.Helper()
	engine := fake.NewEngine(t)
	rt := core.New(core.Config{Engine: engine})
	o := options.Defaults()
	o.RootfsPath, o.AutoRemove = "/", false
	box, _, err := rt.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	h := &home{Open(Config{Dir: filepath.Join(t.TempDir(), "spool"), Limit: limit}), rt, box}
	t.Cleanup(h.Close)
	return h
}

// again opens the store like the next process.
func (h *home) again(t *testing.T) {
	t.Helper()
	h.Close()
	h.Store = Open(Config{Dir: h.dir, Limit: h.limit})
	t.Cleanup(h.Close)
	if err := errors.Join(h.Sweep(t.Context(), h), h.Adopt(t.Context(), h)); err != nil {
		t.Fatal(err)
	}
}

func (h *home) Attach(ctx context.Context, box, exec string, have core.Position) (*core.Exec, error) {
	b, err := h.rt.Get(ctx, box)
	if err != nil {
		return nil, err
	}
	return b.AttachBehind(ctx, exec, have)
}

func (h *home) Exec(ctx context.Context, box, exec string) (api.Exec, error) {
	b, err := h.rt.Get(ctx, box)
	if err != nil {
		return api.Exec{}, err
	}
	return b.ExecRecord(ctx, exec)
}

func (h *home) Status(ctx context.Context, box string) (api.BoxStatus, error) {
	b, err := h.rt.Get(ctx, box)
	if err != nil {
		return "", err
	}
	rec, err := b.Record(ctx)
	return rec.Status, err
}

func (h *home) exec(t *testing.T, o options.Exec) *Exec {
	t.Helper()
	command, err := h.box.Exec(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.Start(command, o.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (h *home) sh(t *testing.T, script string) *Exec {
	t.Helper()
	return h.exec(t, options.Exec{Cmd: []string{"sh", "-c", script}})
}

// heard is what an events reader received.
type heard struct {
	out   [2]bytes.Buffer
	kinds []Kind
	seqs  []int64
	gaps  []Event
	split int // number of events with an incomplete character
}

// listen reads events up to the exit.
func listen(t *testing.T, e *Exec, after int64) *heard {
	t.Helper()
	v, err := e.Events(after)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	h := &heard{}
	h.follow(t, v, func() bool { return false })
	return h
}

func (h *heard) follow(t *testing.T, v *Events, enough func() bool) {
	t.Helper()
	buf := make([]byte, MaxEvent)
	for !v.Done() && !enough() {
		event, err := v.Next(buf)
		if err != nil {
			t.Error(err)
			return
		}
		if event == nil {
			if v.Done() {
				return
			}
			if err := v.Wait(t.Context()); err != nil {
				t.Error(err)
				return
			}
			continue
		}
		h.kinds, h.seqs = append(h.kinds, event.Kind), append(h.seqs, event.Seq)
		switch event.Kind {
		case Log:
			h.out[event.Stream].Write(event.Data)
			if !utf8.Valid(event.Data) {
				h.split++
			}
		case Gap:
			h.gaps = append(h.gaps, *event)
		}
	}
}

// wantRow fails the test unless the event numbers increase by one from first to
// the exit.
func (h *heard) wantRow(t *testing.T, first int64) {
	t.Helper()
	for i, seq := range h.seqs {
		if seq != first+int64(i) {
			t.Fatalf("event %d has number %d, want %d", i, seq, first+int64(i))
		}
	}
	if n := len(h.kinds); n == 0 || h.kinds[n-1] != Exit {
		t.Fatalf("events %v do not end with the exit", h.kinds)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.sh(t, "echo one; echo two >&2; sleep 0.05; echo three; exit 3")
	live := listen(t, e, 0)
	live.wantRow(t, 1)
	if got := live.out[Stdout].String(); got != "one\nthree\n" {
		t.Errorf("stdout %q", got)
	}
	if got := live.out[Stderr].String(); got != "two\n" {
		t.Errorf("stderr %q", got)
	}
	rec := e.Record()
	members.Equal(t, "record", members.Of{
		"status": {rec.Status, api.ExecFailed}, "exit code": {rec.ExitCode, 3},
		"stdout": {rec.StdoutBytes, 10}, "stderr": {rec.StderrBytes, 4}, "an end": {rec.FinishedAt != nil, true},
	})
	stored, err := h.Get(h.box.ID(), e.Record().ID)
	if err != nil {
		t.Fatal(err)
	}
	for after := int64(0); after <= live.seqs[len(live.seqs)-1]; after++ {
		replay := listen(t, stored, after)
		if want := live.seqs[after:]; fmt.Sprint(replay.seqs) != fmt.Sprint(want) {
			t.Errorf("after %d: numbers %v, want %v", after, replay.seqs, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	other := h.sh(t, "true")
	for _, id := range []string{"exec_aaaaaaaaaaaaaaaaaaaa", "../x", "", "exec_" + strings.Repeat("a", 10000), "exec_aaaaaaaaaaaaaaaaaaa\x00"} {
		if _, err := h.Get(h.box.ID(), id); !fault.Is(err, fault.ExecNotFound) {
			t.Errorf("%.30q: %v", id, err)
		}
	}
	if _, err := h.Get("box_aaaaaaaaaaaaaaaaaaaa", other.Record().ID); !fault.Is(err, fault.ExecNotFound) {
		t.Error("in another box:", err)
	}
}

// TestManyReaders checks that readers get the same bytes whether they come
// early, come late, or go away in between.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.sh(t, "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); done; head -c 300000 /dev/zero >&2")
	var want bytes.Buffer
	for i := range 300 {
		fmt.Fprintln(&want, "line", i)
	}
	t.Run("readers", func(t *testing.T) {
		for range 50 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				v, err := e.Events(0)
				if err != nil {
					t.Fatal(err)
				}
				first := &heard{}
				first.follow(t, v, func() bool { return len(first.seqs) >= 2 })
				v.Close()
				second := listen(t, e, first.seqs[len(first.seqs)-1])
				second.wantRow(t, first.seqs[len(first.seqs)-1]+1)
				if got := first.out[Stdout].String() + second.out[Stdout].String(); got != want.String() {
					t.Errorf("%d bytes of stdout, want %d", len(got), want.Len())
				}
				if n := first.out[Stderr].Len() + second.out[Stderr].Len(); n != 300000 {
					t.Errorf("%d bytes of stderr", n)
				}
			})
		}
	})
}

func TestCharacters(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	for _, c := range []struct{ name, script, want string }{
		{"split", `printf '\303'; sleep 0.02; printf '\244\342'; sleep 0.02; printf '\202'; sleep 0.02; printf '\254'`, "ä€"},
		{"never whole", `printf 'a\342\202'`, "a\xe2\x82"},
		{"no text", `printf '\377\376'; sleep 0.02; printf 'x\200'`, "\xff\xfex\x80"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := h.sh(t, c.script)
			v, err := e.Events(0)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			got := &heard{}
			got.follow(t, v, func() bool { return false })
			if s := got.out[Stdout].String(); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
			if c.name == "split" && got.split > 0 {
				t.Errorf("characters were split in %d of %d events", got.split, len(got.seqs))
			}
			got.wantRow(t, 1)
		})
	}
}

func attachAll(t *testing.T, e *Exec, skip [2]int64) [2]string {
	t.Helper()
	a, err := e.Attach(skip)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var out [2]strings.Builder
	buf := make([]byte, 100_000)
	for {
		s, n, err := a.Next(buf)
		if err != nil {
			t.Fatal(err)
		}
		out[s].Write(buf[:n])
		if n > 0 {
			continue
		}
		if ended, _ := a.Ended(); ended {
			return [2]string{out[0].String(), out[1].String()}
		}
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.sh(t, `i=0; while [ $i -lt 200 ]; do echo $i; echo e$i >&2; i=$((i+1)); done; head -c 500000 /dev/zero; printf '\303'`)
	whole := attachAll(t, e, [2]int64{})
	if len(whole[0]) != 690+500000+1 || len(whole[1]) != 890 {
		t.Fatalf("got %d and %d bytes", len(whole[0]), len(whole[1]))
	}
	stored, err := h.Get(h.box.ID(), e.Record().ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, skip := range [][2]int64{{0, 0}, {5, 0}, {0, 888}, {100_001, 400}, {500691, 890}, {1 << 40, 1 << 40}, {-1, -9}} {
		got := attachAll(t, stored, skip)
		for s := range got {
			from := min(max(skip[s], 0), int64(len(whole[s])))
			if got[s] != whole[s][from:] {
				t.Errorf("skip %v: stream %d has %d bytes, want %d", skip, s, len(got[s]), len(whole[s])-int(from))
			}
		}
	}
}

// TestAttachAtOnce checks that an incomplete character is passed on as well: a
// program may wait for an answer to it.
func TestAttachAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.exec(t, options.Exec{Cmd: []string{"sh", "-c", `printf '\303'; read x; echo "$x"`}, Stdin: true})
	a, err := e.Attach([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := e.Attach([2]int64{}); !fault.Is(err, fault.InvalidState) {
		t.Error("a second one attached:", err)
	}
	buf := make([]byte, 16)
	n := 0
	for n == 0 {
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, n, err = a.Next(buf); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 || buf[0] != 0xc3 {
		t.Errorf("got %q", buf[:n])
	}
	command, err := a.Command()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.Stdin().WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := listen(t, e, 0); got.out[Stdout].String() != "\xc3hello\n" {
		t.Errorf("got %q", got.out[Stdout].String())
	}
	if _, err := a.Command(); !fault.Is(err, fault.InvalidState) {
		t.Error("a command that has ended:", err)
	}
}

// TestAttachAfterEnd: an exec that has ended takes the next client before the one that
// was told the end has left. Neither is refused what it still writes, which is dropped.
func TestAttachAfterEnd(t *testing.T) {
	t.Parallel()
	e := newHome(t, 0).sh(t, "printf out")
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var clients [2]*Attached
	for n := range clients {
		a, err := e.Attach([2]int64{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		clients[n] = a
	}
	for _, a := range clients {
		if err := a.Writes(); err != nil {
			t.Error("late input:", err)
		}
		if got := readAll(t, a); got != "out" {
			t.Errorf("read %q", got)
		}
	}
}

// TestLimit lets a command write much more than is kept, while nobody reads.
func TestLimit(t *testing.T) {
	t.Parallel()
	h := newHome(t, 2<<20)
	e := h.sh(t, "i=0; while [ $i -lt 160 ]; do head -c 65536 /dev/zero; printf %08d $i >&2; i=$((i+1)); done")
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := listen(t, e, 0)
	if len(got.gaps) != 1 || got.gaps[0].From != 1 || got.kinds[0] != Gap {
		t.Fatalf("gaps %+v", got.gaps)
	}
	if got.seqs[1] != got.gaps[0].To+1 {
		t.Errorf("after the gap to %d comes %d", got.gaps[0].To, got.seqs[1])
	}
	rec := e.Record()
	for s, total := range []int64{*rec.StdoutBytes, *rec.StderrBytes} {
		if got.gaps[0].Next[s]+int64(got.out[s].Len()) != total {
			t.Errorf("%d bytes of stream %d follow, and the gap ends at %d of %d", got.out[s].Len(), s, got.gaps[0].Next[s], total)
		}
	}
	kept := got.out[Stdout].Len()
	if kept < 1<<20 || kept > 2<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	if tail := got.out[Stderr].String(); !strings.HasSuffix(tail, "00000159") || strings.HasPrefix(tail, "00000000") {
		t.Errorf("stderr begins with %.20q and ends with %q", tail, tail[max(0, len(tail)-8):])
	}
	if rec := e.Record(); *rec.StdoutBytes != 160<<16 || *rec.StderrBytes != 160*8 {
		t.Errorf("counted %d and %d", *rec.StdoutBytes, *rec.StderrBytes)
	}
	wantOnDisk(t, h, e, 3<<20)
	rest := attachAll(t, e, [2]int64{})
	if rest[0] != got.out[Stdout].String() || rest[1] != got.out[Stderr].String() {
		t.Errorf("an attached client gets %d and %d bytes", len(rest[0]), len(rest[1]))
	}
}

func wantOnDisk(t *testing.T, h *home, e *Exec, most int64) {
	t.Helper()
	var blocks int64
	for _, suffix := range []string{".stdout", ".stderr", ".index"} {
		blocks += diskUse(t, filepath.Join(h.boxDir(h.box.ID()), e.Record().ID+suffix))
	}
	if blocks > most {
		t.Errorf("%d bytes on disk", blocks)
	}
}

// TestBackPressure checks that the command waits for an attached client that
// does not read, and loses nothing.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	h := newHome(t, 1<<20)
	e, start := h.gated(t, "head -c 20000000 /dev/zero; echo end")
	a, err := e.Attach([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	start()
	for *e.Record().StdoutBytes < 1<<20 {
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := *e.Record().StdoutBytes; n > 3<<20 {
		t.Errorf("%d bytes were read from a command that should wait", n)
	}
	buf := make([]byte, 256<<10)
	var sum int64
	for {
		_, n, err := a.Next(buf)
		if err != nil {
			t.Fatal(err)
		}
		sum += int64(n)
		if ended, _ := a.Ended(); ended {
			break
		}
		if n == 0 {
			if err := a.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sum != 20000004 {
		t.Errorf("got %d bytes", sum)
	}
}

// TestLateReader checks that output is dropped when an events reader does not
// read, and that the reader is told what it missed.
func TestLateReader(t *testing.T) {
	t.Parallel()
	h := newHome(t, 1<<20)
	h.timeout = 300 * time.Millisecond
	e, start := h.gated(t, "head -c 5000000 /dev/zero; echo end")
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	began := time.Now()
	start()
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < h.timeout {
		t.Errorf("the reader had %v", took)
	}
	got := &heard{}
	got.follow(t, v, func() bool { return false })
	if len(got.gaps) != 1 || !strings.HasSuffix(got.out[Stdout].String(), "end\n") {
		t.Errorf("gaps %+v", got.gaps)
	}
}

// TestBackgroundChild checks that the end comes soon although a child holds the
// pipes.
func TestBackgroundChild(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.sh(t, "echo out; (sleep 30; echo late) & echo done")
	got := listen(t, e, 0)
	if got.out[Stdout].String() != "out\ndone\n" {
		t.Errorf("got %q", got.out[Stdout].String())
	}
	if rec := e.Record(); *rec.DurationMS > 20_000 {
		t.Errorf("it took %d ms", *rec.DurationMS)
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.exec(t, options.Exec{Cmd: []string{"sh", "-c", "tty >/dev/null && echo terminal; stty size"}, TTY: true, Cols: 77, Rows: 33})
	if got := listen(t, e, 0); got.out[Stdout].String() != "terminal\r\n33 77\r\n" {
		t.Errorf("got %q", got.out[Stdout].String())
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.sh(t, "echo on; sleep 100")
	if err := e.Cancel(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	listen(t, e, 0).wantRow(t, 1)
	if rec := e.Record(); rec.Status != api.ExecCanceled {
		t.Errorf("status %s", rec.Status)
	}
	if err := e.Cancel(t.Context(), time.Second); !fault.Is(err, fault.InvalidState) {
		t.Error("a second cancel:", err)
	}
}

// TestAdopted checks that reading and the command continue in the next process.
func TestAdopted(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.exec(t, options.Exec{Cmd: []string{"sh", "-c", "echo before; read x; echo $x"}, Stdin: true, KeepStdin: true})
	early := &heard{}
	v, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	early.follow(t, v, func() bool { return len(early.seqs) == 1 })
	v.Close()
	h.again(t)
	e2, err := h.Get(h.box.ID(), e.Record().ID)
	if err != nil {
		t.Fatal(err)
	}
	command, err := e2.running()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.Stdin().WriteString("after\n"); err != nil {
		t.Fatal(err)
	}
	late := listen(t, e2, 1)
	late.wantRow(t, 2)
	if got := early.out[Stdout].String() + late.out[Stdout].String(); got != "before\nafter\n" {
		t.Errorf("got %q", got)
	}
}

// waiting starts a command that prints its second line, and ends, once open was called.
func (h *home) waiting(t *testing.T) (e *Exec, open func()) {
	t.Helper()
	gate := filepath.Join(t.TempDir(), "gate")
	e = h.sh(t, "echo one; while [ ! -e "+gate+" ]; do sleep 0.01; done; echo two; exit 4")
	return e, func() {
		t.Helper()
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// wantTaken checks that nothing of such a command is lost on a process that has taken it over.
func (h *home) wantTaken(t *testing.T, e *Exec) {
	t.Helper()
	e2, err := h.Get(h.box.ID(), e.Record().ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := listen(t, e2, 0); got.out[Stdout].String() != "one\ntwo\n" || *e2.Record().ExitCode != 4 {
		t.Errorf("got %q, record %+v", got.out[Stdout].String(), e2.Record())
	}
}

// TestAdoptedUnseen checks the ends that nobody saw: of a command, and of a
// box.
func TestAdoptedUnseen(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e, open := h.waiting(t)
	h.Close()
	open()
	if _, err := h.box.AwaitExec(t.Context(), e.Record().ID); err != nil {
		t.Fatal(err)
	}
	h.again(t)
	h.wantTaken(t, e)
	sleeper := h.sh(t, "echo three; sleep 100")
	listening, err := sleeper.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	(&heard{}).follow(t, listening, func() bool { return *sleeper.Record().StdoutBytes > 0 })
	listening.Close()
	h.Close()
	if _, err := h.box.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	h.again(t)
	e3, err := h.Get(h.box.ID(), sleeper.Record().ID)
	if err != nil {
		t.Fatal(err)
	}
	if rec := e3.Record(); rec.Status != api.ExecFailed || rec.Reason == nil || *rec.Reason != api.ReasonBoxStopped {
		t.Errorf("record %+v", rec)
	}
	listen(t, e3, 0).wantRow(t, 1)
	if places := h.Places(h.box.ID()); len(places) != 2 || places[0].ID != sleeper.Record().ID {
		t.Errorf("places %v", places)
	}
}

// ending is a box whose end has not been noted yet.
type ending struct {
	*home
	looks int // at its status
}

func (*ending) Attach(context.Context, string, string, core.Position) (*core.Exec, error) {
	return nil, fault.New(fault.InvalidState, "the box is stopping")
}

func (*ending) Exec(context.Context, string, string) (api.Exec, error) {
	return api.Exec{}, fault.New(fault.InvalidState, "the box is stopping")
}

func (b *ending) Status(context.Context, string) (api.BoxStatus, error) {
	if b.looks++; b.looks < 4 {
		return api.Running, nil
	}
	return api.Stopped, nil
}

// TestAdoptedEnding checks that the commands of a box that is stopping are not
// taken for lost.
func TestAdoptedEnding(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.sh(t, "sleep 100")
	h.Close()
	h.Store = Open(Config{Dir: h.dir})
	t.Cleanup(h.Close)
	if err := h.Adopt(t.Context(), &ending{home: h}); err != nil {
		t.Fatal(err)
	}
	stored, err := h.Get(h.box.ID(), e.Record().ID)
	if err != nil {
		t.Fatal(err)
	}
	if rec := stored.Record(); rec.Status != api.ExecFailed || *rec.Reason != api.ReasonBoxStopped {
		t.Errorf("record %+v", rec)
	}
}

// short is what a process without free descriptors knows of boxes.
type short struct{ *home }

func (short) Attach(context.Context, string, string, core.Position) (*core.Exec, error) {
	return nil, fault.New(fault.ResourceExhausted, "no descriptors")
}

// cut is what a process knows of boxes that is told to end while it asks them.
type cut struct {
	*home
	end context.CancelFunc
}

func (c cut) Attach(ctx context.Context, _, _ string, _ core.Position) (*core.Exec, error) {
	c.end()
	return nil, fault.Of(ctx.Err())
}

func (cut) Exec(ctx context.Context, _, _ string) (api.Exec, error) {
	return api.Exec{}, fault.Of(ctx.Err())
}

// TestAdoptedShort checks that a process that can't reach an exec for want of
// descriptors, or because it is told to end, does not take it for lost: the next process
// takes it over.
func TestAdoptedShort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		kind  fault.Kind
		boxes func(*home) Boxes
	}{
		{fault.ResourceExhausted, func(h *home) Boxes { return short{h} }},
		{fault.Canceled, func(h *home) Boxes { return cut{h, cancel} }},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			h := newHome(t, 0)
			e, open := h.waiting(t)
			h.Close()
			h.Store = Open(Config{Dir: h.dir, Limit: h.limit})
			if err := h.Adopt(ctx, c.boxes(h)); !fault.Is(err, c.kind) {
				t.Errorf("got %v, want %s", err, c.kind)
			}
			h.again(t)
			open()
			h.wantTaken(t, e)
		})
	}
}

// TestRemoved removes the box: streams must end and files must be deleted.
func TestRemoved(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	e := h.sh(t, "echo on; sleep 100")
	if err := h.rt.Remove(t.Context(), h.box.ID(), true); err != nil {
		t.Fatal(err)
	}
	if err := h.Sweep(t.Context(), h); err != nil {
		t.Error(err)
	}
	listen(t, e, 0).wantRow(t, 1)
	h.Close()
	if _, err := os.Stat(h.boxDir(h.box.ID())); !os.IsNotExist(err) {
		left, _ := filepath.Glob(filepath.Join(h.boxDir(h.box.ID()), "*"))
		t.Error("the directory is left:", err, left)
	}
	if _, err := h.Get(h.box.ID(), e.Record().ID); !fault.Is(err, fault.ExecNotFound) {
		t.Error(err)
	}
}

// TestKept checks that the oldest execs are forgotten, but none that runs.
func TestKept(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	first := h.sh(t, "echo x")
	if err := first.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.pumps.Wait() // the pump holds the exec for a moment after its end
	runs := h.sh(t, "sleep 100")
	h.mu.Lock() // as if the running one were the oldest, and there had been many more execs since
	slices.Reverse(h.known[h.box.ID()])
	for range DefaultKeep - 2 {
		h.known[h.box.ID()] = append(h.known[h.box.ID()], Place{ID: ids.Exec.New()})
	}
	h.mu.Unlock()
	h.sh(t, "true")
	if _, err := h.Get(h.box.ID(), first.Record().ID); !fault.Is(err, fault.ExecNotFound) {
		t.Error("the oldest is still there:", err)
	}
	if _, err := h.Get(h.box.ID(), runs.Record().ID); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(h.boxDir(h.box.ID()), first.Record().ID+"*"))
	if err != nil || len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}

// TestStartWhileClosing starts a command when Close has told all others to stop, and waits
// for them. Close must not wait for that one, which goes on for the next process.
func TestStartWhileClosing(t *testing.T) {
	t.Parallel()
	h := newHome(t, 0)
	first := h.exec(t, reading)
	h.pumps.Add(1) // holds Close up
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		h.Close()
	}()
	boxes.Await(t, "the first command to be left", first.stopping)
	id := h.exec(t, options.Exec{Cmd: []string{"cat"}, Stdin: true, KeepStdin: true}).Record().ID
	h.mu.Lock()
	followed := h.live[id] != nil
	h.mu.Unlock()
	h.pumps.Done()
	if followed {
		t.Fatal("Close waits for a command that nobody has told to stop")
	}
	<-closed
	h.again(t)
	e, err := h.Get(h.box.ID(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.WriteStdin(t.Context(), strings.NewReader("all"), true); err != nil {
		t.Fatal(err)
	}
	if got := attachAll(t, e, [2]int64{}); got[Stdout] != "all" {
		t.Errorf("got %q", got[Stdout])
	}
}
