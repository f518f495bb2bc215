package soak_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
)

// damage overwrites parts of the records of a box, an exec, an API key and an
// Idempotency-Key that nobody else uses. Each is told as the contract says, and
// everybody else notices nothing.
func (s *soak) damage() {
	end := s.begin(damaged)
	defer end()
	s.damages++
	w := s.newWorker(fmt.Sprint("damage", s.damages))
	box, err := w.create()
	if err != nil {
		return
	}
	if w.output(box) == nil {
		s.damageExec(w, box, w.done[0])
	}
	s.damageReply(w)
	s.damageKey(w)
	s.damageBox(w, box)
}

// overwrite puts bytes that no record has into a file, somewhere.
func (s *soak) overwrite(elems ...string) {
	name := filepath.Join(append([]string{s.home}, elems...)...)
	text, err := os.ReadFile(name)
	must(s.t, err)
	at := s.rng.IntN(len(text))
	copy(text[at:], bytes.Repeat([]byte{0}, 1+s.rng.IntN(16)))
	if s.rng.IntN(3) == 0 {
		text = text[:at]
	}
	must(s.t, os.WriteFile(name, text, 0o600))
}

// damageExec wants an exec with a damaged record to be shown as failed, with the
// whole output.
func (s *soak) damageExec(w *worker, box string, f follower) {
	s.overwrite("spool", box, f.id+".json")
	e, err := w.readExec(box, f.id)
	for err == nil && e.ExitCode != nil && w.pause(nil) { // the daemon that followed it has it in memory for a moment
		e, err = w.readExec(box, f.id)
	}
	if err != nil {
		return
	}
	if e.Status != api.ExecFailed || e.ExitCode != nil {
		_ = w.fail(read, f.id, fmt.Errorf("its record is damaged and it is shown as %s", e.Status))
	}
	c := w.checker(f)
	for c.exit == nil && err == nil {
		err = w.insist(read, f.id, func() error {
			if err := w.events(box, f.id, c, -1); !fault.Is(err, fault.Engine) { // an end without an exit code is told so
				return err
			}
			return nil
		})
	}
	s.lost.Add(c.missing())
	if c.missing() > 0 {
		_ = w.fail(read, f.id, fmt.Errorf("its record is damaged and %d bytes are missing", c.missing()))
	}
}

func (w *worker) readExec(box, id string) (e api.Exec, err error) {
	err = w.insist(read, id, func() (err error) {
		e, err = w.c.Exec(w.ctx, box, id)
		return err
	})
	return e, err
}

// damageReply wants a create to be refused whose record is damaged: nobody knows
// any more which box it made.
func (s *soak) damageReply(w *worker) {
	key := fmt.Sprintf("%s-%d", w.name, w.made)
	s.overwrite("daemon", "creates", fmt.Sprintf("%x.json", sha256.Sum256([]byte(key))))
	var box api.Box
	if err := w.post(key, []byte(`{"image":"busybox"}`), &box); !fault.Is(err, fault.Storage) {
		_ = w.fail(create, key, fmt.Errorf("its record is damaged, and it is answered %q, %w", box.ID, err))
	}
}

// damageKey wants a damaged key to be unknown after a restart, and all others to
// be known.
func (s *soak) damageKey(w *worker) {
	var key api.Key
	err := w.insist(newKey, "damaged", func() (err error) {
		key, err = s.clients[0].CreateKey(s.ctx, client.NewKey{Name: "damaged", Permissions: []string{"Boxes"}})
		return err
	})
	if err != nil {
		return
	}
	s.overwrite("daemon", "keys", key.ID+".json")
	s.killDaemon()
	c, err := client.New(client.Options{URL: "http://" + address, Credential: client.NewApiKeyCredential(key.Secret)})
	must(s.t, err)
	defer c.Close()
	if _, err := c.Me(s.ctx); !fault.Is(err, fault.Unauthenticated) {
		_ = w.fail(newKey, key.ID, fmt.Errorf("its record is damaged, and it is answered: %w", err))
	}
}

// damageBox wants a box with a damaged record to be shown as failed by the next
// shim, and to be removed like any other.
func (s *soak) damageBox(w *worker, box string) {
	s.overwrite("records", box+".json")
	s.killShim()
	var b api.Box
	err := w.insist(read, box, func() (err error) {
		b, err = w.c.Box(s.ctx, box)
		return err
	})
	if err == nil && (b.Status != api.Failed || b.Error == nil || b.Error.Code != fault.Storage) {
		_ = w.fail(read, box, fmt.Errorf("its record is damaged and it is shown as %s", b.Status))
	}
	w.remove(box)
}
