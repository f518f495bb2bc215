package contestants

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandbox/bench/harness"
	"sandbox/core/options"
)

// e2bImage is an image with bash, which E2B's SDKs run commands with.
const e2bImage = "debian:e2b"

//go:embed e2b.py
var e2bProgram string

// E2B is E2B's own SDK for Python, unmodified, with a service of ours that answers it.
type E2B struct {
	service *Service
	sdk     *harness.Conversation
	// Why says why there is no SDK; "" if there is one.
	Why string
}

// StartE2B has the SDK use a service. Its image comes with it. The owner closes it.
func (s *Service) StartE2B(ctx context.Context, b *Field) (*E2B, error) {
	e := &E2B{service: s}
	python := filepath.Join(b.Tools, "e2b/venv/bin/python")
	if _, err := os.Stat(python); err != nil {
		e.Why = "E2B's SDK is not installed: make bench-peers"
	}
	if _, err := s.Ours.host.Images.Import(ctx, e2bImage, filepath.Join(b.Tools, "bench/layer.tar.gz"), nil); err != nil || e.Why != "" {
		return e, err
	}
	said, err := os.ReadFile(s.log)
	if err != nil {
		return nil, err
	}
	url, _, ok := strings.Cut(string(said), " (E2B)")
	if !ok {
		return nil, fmt.Errorf("the daemon does not say where E2B's SDKs find it: %.400s", said)
	}
	url = url[strings.LastIndexByte(url, ' ')+1:]
	e.sdk, err = harness.Converse(harness.Command{Args: []string{python, "-c", e2bProgram, url, s.key, e2bImage}})
	return e, err
}

// Run makes a box, runs `echo hi` in it and removes it, by the SDK. The removal does not
// count.
func (e *E2B) Run(context.Context) (time.Duration, error) {
	said, err := e.sdk.Ask("")
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(said, 10, 64)
	return time.Duration(ns), err
}

// Rest does the same by our own routes, over TCP with a key: a create, an exec and its
// events.
func (e *E2B) Rest(ctx context.Context) (took time.Duration, err error) {
	o := options.Defaults()
	o.Image, o.AutoRemove = e2bImage, false
	start := time.Now()
	box, err := e.service.tcp.CreateBox(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() {
		_, removed := e.service.tcp.RemoveBox(ctx, box.ID, true)
		err = errors.Join(err, removed)
	}()
	err = said(ctx, e.service.tcp, box.ID, []string{"/bin/bash", "-l", "-c", "echo hi"})
	return time.Since(start), err
}

// Close ends the SDK.
func (e *E2B) Close() error {
	if e == nil || e.sdk == nil {
		return nil
	}
	return e.sdk.Close()
}
