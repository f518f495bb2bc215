package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/core/engine/link"
)

// learn has the keys of the pods that wait in pools read before there is a claim: a node
// that starts pods takes a while to tell a log. One that can't be read is read by the claim.
func (a *agents) learn() {
	waiting := map[types.UID]*corev1.Pod{}
	for _, pod := range a.engine.pods.all(isPooled) {
		if runs(pod) {
			waiting[pod.UID] = pod
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.keys, func(uid types.UID, _ *ecdsa.PublicKey) bool { return waiting[uid] == nil })
	for uid, pod := range waiting {
		if _, begun := a.keys[uid]; begun {
			continue
		}
		a.keys[uid] = nil
		a.engine.work.Go(func() {
			ctx, cancel := context.WithTimeout(a.engine.ctx, answerTimeout)
			defer cancel()
			if key, err := a.engine.told(ctx, pod); err == nil {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.keys[uid] = key
			}
		})
	}
}

// vouch returns a certificate for the key that the init in a pod has made.
func (a *agents) vouch(ctx context.Context, pod *corev1.Pod) (string, error) {
	a.mu.Lock()
	key := a.keys[pod.UID]
	a.mu.Unlock()
	if key == nil {
		var err error
		if key, err = a.engine.told(ctx, pod); err != nil {
			return "", err
		}
	}
	cert, err := a.engine.keys.vouch(pod.UID, key)
	return string(cert), err
}

// told returns the public key that the init in a pod has told in its log. It is the
// kubelet's word, which the API server verifies, for what process 1 has written before
// anything of a box runs.
func (e *Engine) told(ctx context.Context, pod *corev1.Pod) (*ecdsa.PublicKey, error) {
	log, err := e.api.log(ctx, e.conn.namespace, pod.Name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	key, err := link.ReadKey(log)
	if err != nil {
		return nil, fmt.Errorf("read the public key of pod %s in its log: %w", pod.Name, err)
	}
	return key, nil
}
