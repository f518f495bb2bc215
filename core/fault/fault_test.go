package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/core/fault"
)

func TestOf(t *testing.T) {
	t.Parallel()
	storage := fault.Wrap(fault.Storage, io.ErrShortWrite, "write box.json")
	for name, tt := range map[string]struct {
		err  error
		kind fault.Kind
		text string
	}{
		"new":           {fault.New(fault.BoxNotFound, "no box %q", "b"), fault.BoxNotFound, `no box "b"`},
		"wrapped":       {storage, fault.Storage, "write box.json: short write"},
		"behind words":  {fmt.Errorf("create: %w", storage), fault.Storage, "create: write box.json: short write"},
		"the outermost": {fault.Wrap(fault.Engine, storage, "create"), fault.Engine, "create: write box.json: short write"},
		"no words":      {fault.Wrap(fault.Image, io.EOF, ""), fault.Image, "EOF"},
		"joined":        {errors.Join(io.EOF, storage), fault.Storage, "EOF\nwrite box.json: short write"},
		"canceled":      {fmt.Errorf("wait: %w", context.Canceled), fault.Canceled, "wait: context canceled"},
		"late":          {context.DeadlineExceeded, fault.Timeout, "context deadline exceeded"},
		"short":         {fmt.Errorf("dial: %w", syscall.EMFILE), fault.ResourceExhausted, "dial: too many open files"},
		"unclassified":  {io.EOF, fault.Internal, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fault.Of(tt.err)
			if f.Kind != tt.kind || f.Error() != tt.text {
				t.Errorf("got %v: %q, want %v: %q", f.Kind, f.Error(), tt.kind, tt.text)
			}
			if !fault.Is(tt.err, tt.kind) {
				t.Errorf("Is(%v) is false", tt.kind)
			}
		})
	}
}

func TestNil(t *testing.T) {
	t.Parallel()
	if fault.Of(nil) != nil || fault.Wrap(fault.Internal, nil, "x") != nil || fault.Is(nil, fault.Internal) {
		t.Error("nil became a failure")
	}
}

func TestClassified(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {io.EOF, false}, {context.Canceled, false},
		{fault.New(fault.Image, "x"), true}, {fmt.Errorf("pull: %w", fault.Wrap(fault.Storage, io.EOF, "x")), true},
	} {
		if got := fault.Classified(tt.err); got != tt.want {
			t.Errorf("Classified(%v) is %v", tt.err, got)
		}
	}
}

func TestCauseIsKept(t *testing.T) {
	t.Parallel()
	if err := fault.Wrap(fault.Storage, io.ErrShortWrite, "x"); !errors.Is(err, io.ErrShortWrite) {
		t.Error("the cause is lost")
	}
}

func TestKindAsText(t *testing.T) {
	t.Parallel()
	for i := range fault.Table() {
		text, err := json.Marshal(fault.Kind(i))
		if err != nil {
			t.Fatal(err)
		}
		var k fault.Kind
		if err := json.Unmarshal(text, &k); err != nil || k != fault.Kind(i) {
			t.Errorf("%s came back as %v (%v)", text, k, err)
		}
	}
	var k fault.Kind
	if err := json.Unmarshal([]byte(`"of a later version"`), &k); err != nil || k != fault.Internal {
		t.Errorf("an unknown code is %v (%v), want internal", k, err)
	}
	if fault.Kind(255).String() != "internal" {
		t.Error("an unknown kind is not internal")
	}
}

// TestHidden tests that code that writes our own log finds a hidden cause, and
// that it is shown to nobody else.
func TestHidden(t *testing.T) {
	t.Parallel()
	inner := &fault.Error{Kind: fault.SQLError, Message: "no such column", Hidden: io.ErrNoProgress, RetryAfter: time.Second, Prerequisite: "do this"}
	for name, err := range map[string]error{
		"itself":       inner,
		"behind words": fmt.Errorf("query: %w", inner),
		"wrapped":      fault.Wrap(fault.Upstream, inner, "query"),
	} {
		f := fault.Of(err)
		if !errors.Is(err, io.ErrNoProgress) || !errors.Is(f.Hidden, io.ErrNoProgress) || strings.Contains(f.Error(), io.ErrNoProgress.Error()) {
			t.Errorf("%s: got %q with the hidden cause %v", name, f, f.Hidden)
		}
	}
	if f := fault.Of(fmt.Errorf("query: %w", inner)); f.RetryAfter != time.Second || f.Prerequisite != "do this" {
		t.Errorf("got %+v", f)
	}
}
