package kubernetes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
)

// patience is how long the next try waits after the API server has refused something:
// nothing tells when it would take it.
const patience = 5 * time.Second

// tend does what is to be done without a request, until ctx ends: it ends boxes whose
// time has come, removes those with auto_remove that have ended and pods whose makers have
// died, and fills the pool. Several programs may tend one namespace: whoever comes second
// finds it done.
func (e *Engine) tend(ctx context.Context) {
	for ctx.Err() == nil {
		changed := e.news.changes()
		next, err := e.tendOnce(ctx)
		if err != nil {
			next = patience
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// forever is the next time where there is none.
const forever = time.Hour

func (e *Engine) tendOnce(ctx context.Context) (next time.Duration, err error) {
	next = forever
	e.ready.Lock()
	begun := e.keys != nil
	e.ready.Unlock()
	if !begun {
		return next, nil
	}
	for _, pod := range e.pods.all(isBox) {
		rec := recordOf(pod)
		switch left := untilExpiry(rec); {
		case !rec.Status.Up() && rec.Options.AutoRemove && rec.Status != api.Created:
			err = errors.Join(err, e.delete(ctx, pod))
		case left <= 0:
			e.expire(ctx, pod)
		default:
			next = min(next, left)
		}
	}
	for _, pod := range e.pods.all(unfinished) {
		left := 2*e.config.scheduleTimeout() - e.pods.age(pod)
		if left > 0 {
			next = min(next, left)
			continue
		}
		err = errors.Join(err, e.delete(ctx, pod))
	}
	left, failed := e.tendDisks(ctx)
	next, err = min(next, left, e.tendIdle(ctx, e.pods.all(isBox))), errors.Join(err, failed)
	left, failed = e.agents.tend(ctx)
	next, err = min(next, left), errors.Join(err, failed)
	for _, pod := range e.pods.condemned() {
		err = errors.Join(err, e.delete(ctx, pod))
	}
	for _, pod := range e.lines.known() {
		if now := e.pods.at(pod.Name); now == nil || now.UID != pod.UID || over(now) {
			e.lines.forget(pod)
		}
	}
	for more := true; more && err == nil; {
		more, err = e.spares.fill(ctx)
	}
	return next, err
}

// unfinished reports whether a pod has never run, or is neither a box nor a spare. Whoever
// makes one waits for ScheduleTimeout and then deletes it. So one that this process has
// seen for twice that time was abandoned: its maker has died.
func unfinished(pod *corev1.Pod) bool {
	started := container(pod).State.Running != nil || over(pod)
	named := pod.Labels[labelBox] != "" || pod.Labels[labelSpare] != ""
	return pod.DeletionTimestamp == nil && !isPooled(pod) && !(started && named)
}

func untilExpiry(rec core.Record) time.Duration {
	if !rec.Status.Up() || rec.ExpiresAt == nil {
		return forever
	}
	return time.Until(*rec.ExpiresAt)
}

// expire ends a box whose time is over, unless that has begun. It does so beside the other
// boxes: the end takes as long as the box's processes and the save of its disk.
func (e *Engine) expire(ctx context.Context, pod *corev1.Pod) {
	if _, begun := e.expiring.LoadOrStore(pod.UID, true); begun {
		return
	}
	e.work.Go(func() {
		if err := e.endExpired(ctx, pod.Labels[labelBox]); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(patience):
			}
		}
		e.expiring.Delete(pod.UID)
		e.news.tell()
	})
}

// endExpired ends a box if its time is over still when it is its turn.
func (e *Engine) endExpired(ctx context.Context, id string) error {
	end, err := e.turns.take(ctx, id)
	if err != nil {
		return err
	}
	defer end()
	rec, pod, err := e.find(ctx, id)
	if err != nil || pod == nil || untilExpiry(rec) > 0 {
		return err
	}
	return e.finish(ctx, pod, asked(rec, pod), reasonExpired)
}

// finish does with a box what its options say, for a reason. One that is not removed and
// has no disk of its own can't be started again, so it is only told of then, until
// somebody removes it.
func (e *Engine) finish(ctx context.Context, pod *corev1.Pod, rec core.Record, reason string) error {
	if rec.Options.AutoRemove || rec.Options.OnExpiry == options.ExpiryRemove {
		return errors.Join(e.forgetDisk(ctx, e.diskOf(pod)), e.delete(ctx, pod))
	}
	rec.Reason, rec.ExpiresAt = reason, nil
	err := e.patch(ctx, pod, rec, nil, nil)
	if apierrors.IsConflict(err) { // because of the error the next look comes a while later, and sees what has changed
		if _, unread := e.reread(ctx, pod.Name); unread != nil {
			err = unread
		}
	}
	if apierrors.IsNotFound(err) { // another program was faster
		e.pods.leave(pod)
		return nil
	}
	if err != nil {
		return failure(err, "end a box: %s", reason)
	}
	ctx, cancel := context.WithTimeout(ctx, core.DefaultGrace+answerTimeout+saveTime)
	defer cancel()
	rec, err = e.end(ctx, pod, rec, core.DefaultGrace, reason)
	if err != nil || !hasDisk(pod) {
		return err
	}
	return e.settle(ctx, pod, rec)
}
