package soak_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
)

// workers is how many clients work at once.
const workers = 5

// worker is a client that makes boxes and uses them, one after another.
type worker struct {
	*soak
	c    *client.Client
	rng  *rand.Rand
	name string
	made int
	done []follower // the commands of the present box that have ended
	// sized tells whether the present box has a disk with a size: a sparse file, which
	// fails like a broken disk when the home's is full. It is there for its loop device.
	sized bool
}

// follower is a command and what it prints.
type follower struct {
	id   string
	want wanted
	from time.Time // before it began
}

// newWorker returns a worker whose choices follow from the seed and its name.
func (s *soak) newWorker(name string) *worker {
	rng := rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d %s", *seed, name))))
	return &worker{soak: s, c: s.clients[rng.IntN(len(s.clients))], name: name, rng: rng}
}

// work makes boxes until stop is closed.
func (w *worker) work(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if w.ctx.Err() != nil {
			return
		}
		w.life()
	}
}

// errGaveUp ends what a worker does with a box after a failure that was told.
var errGaveUp = errors.New("gave up")

// life makes a box, uses it in some ways, looks at all of its output again, and
// removes it.
func (w *worker) life() {
	box, err := w.create()
	if err != nil {
		return
	}
	w.done = nil
	ways := []func(box string) error{w.output, w.echo, w.terminal, w.canceled, w.once}
	if !w.sized {
		ways = append(ways, w.files, w.restart)
	}
	for _, i := range w.rng.Perm(len(ways))[:1+w.rng.IntN(len(ways))] {
		if err = ways[i](box); err != nil {
			break
		}
	}
	for _, f := range w.done {
		w.reread(box, f)
	}
	w.remove(box)
}

// insist repeats a call until it succeeds, as long as its failures may be. again
// are the failures that a repetition may end with, because an earlier try has
// done what was asked.
func (w *worker) insist(o op, id string, call func() error, again ...fault.Kind) error {
	for try := 0; ; try++ {
		from := time.Now()
		err := call()
		w.answered.Add(1)
		if err == nil {
			return nil
		}
		kind := kindOf(err)
		switch wrong := (*wrongOutput)(nil); {
		case try > 0 && slices.Contains(again, kind):
			return nil
		case errors.As(err, &wrong):
			w.wrong.Add(1)
			return w.fail(o, id, err)
		case !w.may(o, from, kind):
			w.unexpected.Add(1)
			return w.fail(o, id, err)
		}
		w.refuse(o, kind)
		if w.retries.Add(1); !w.pause(nil) {
			return errGaveUp
		}
	}
}

// fail tells a failure that may not be, with what the logs say of it.
func (w *worker) fail(o op, id string, err error) error {
	w.t.Errorf("%s: %s of %s: %s: %v, disturbed by %v\nthe daemon's log:\n%sthe shim's log:\n%s",
		time.Now().Format("15:04:05.000"), o, id, kindOf(err), err, w.since(time.Now().Add(-time.Second)), tail(w.daemonLog(), id), tail(w.shimLog(), id))
	return errGaveUp
}

// create makes a box with an Idempotency-Key, and asks for it again now and then.
func (w *worker) create() (string, error) {
	w.made++
	key := fmt.Sprintf("%s-%d", w.name, w.made)
	box := map[string]any{
		"image": "busybox", "cpus": 1, "memory_mib": 64, "labels": map[string]string{"soak": key},
		"network": []string{"None", "Isolated"}[w.rng.IntN(2)],
	}
	if w.rng.IntN(4) == 0 {
		box["network"], box["ports"] = "Isolated", []map[string]int{{"guest_port": 80}}
	}
	if w.sized = w.rng.IntN(8) == 0; w.sized {
		box["disk_size_gb"] = 1
	}
	doc, err := json.Marshal(box)
	must(w.t, err)
	var first, second api.Box
	from := time.Now()
	err = w.insist(create, key, func() error { return w.post(key, doc, &first) })
	if err == nil && w.rng.IntN(2) == 0 {
		err = w.insist(create, key, func() error { return w.post(key, doc, &second) })
		if err == nil && second.ID != first.ID {
			err = w.fail(create, key, fmt.Errorf("the same key is answered with %s and then %s", first.ID, second.ID))
		}
	}
	if err == nil {
		w.boxes.Add(1)
		err = w.single(key, first.ID, from)
	}
	return first.ID, err
}

// post sends a create.
func (w *worker) post(key string, doc []byte, box *api.Box) error {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://box/v1/boxes", bytes.NewReader(doc))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := w.raw().Do(req)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "create")
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "create")
	}
	if resp.StatusCode == http.StatusCreated {
		return json.Unmarshal(text, box)
	}
	var refused struct {
		Error struct {
			Code    fault.Kind
			Message string
		}
	}
	if err := json.Unmarshal(text, &refused); err != nil {
		return fmt.Errorf("%d %.200q: %w", resp.StatusCode, text, err)
	}
	return fault.New(refused.Error.Code, "%s", refused.Error.Message)
}

// single counts the boxes of a key, and removes those that are too many.
func (w *worker) single(key, id string, from time.Time) error {
	var all []api.Box
	err := w.insist(read, key, func() (err error) {
		all, err = w.c.Boxes(w.ctx, client.Filter{Label: "soak=" + key})
		return err
	})
	if err != nil {
		return err
	}
	found := false
	for _, box := range all {
		if box.ID == id {
			found = true
			continue
		}
		w.duplicates.Add(1)
		w.t.Errorf("the key %s made %s too", key, box.ID)
		w.remove(box.ID)
	}
	if !found {
		return w.fail(create, id, fmt.Errorf("it was made and is not there, disturbed by %v", w.since(from)))
	}
	return nil
}

// remove removes a box, and wants it to be gone.
func (w *worker) remove(box string) {
	err := w.insist(remove, box, func() error {
		_, err := w.c.RemoveBox(w.ctx, box, true)
		return err
	}, fault.BoxNotFound)
	if err != nil {
		return
	}
	_ = w.insist(read, box, func() error {
		switch _, err := w.c.Box(w.ctx, box); {
		case err == nil:
			return fmt.Errorf("it was removed and is there")
		case fault.Is(err, fault.BoxNotFound):
			return nil
		default:
			return err
		}
	})
}
