package mcp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/mcp"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*mcp.Limits)
		says   string // "" for no failure
	}{
		"as they are":      {func(*mcp.Limits) {}, ""},
		"no boxes":         {func(l *mcp.Limits) { l.MaxBoxes = 0 }, "the most boxes of a session must be more than 0"},
		"no output":        {func(l *mcp.Limits) { l.MaxOutput = -1 }, "the most output of a reply must be more than 0"},
		"no time":          {func(l *mcp.Limits) { l.Timeout = 0 }, "the time of a command must be more than 0"},
		"no time idle":     {func(l *mcp.Limits) { l.Idle = 0 }, "the time of an idle session must be more than 0"},
		"more than most":   {func(l *mcp.Limits) { l.Timeout = time.Hour }, "the time of a command is 1h0m0s and must be at most the longest, which is 10m0s"},
		"no such network":  {func(l *mcp.Limits) { l.Box.Network = "Bridge" }, "network"},
		"too little space": {func(l *mcp.Limits) { l.Box.MemoryMiB = 1 }, "memory_mib"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mcp.DefaultLimits()
			tt.change(&l)
			s, err := mcp.New(mcp.Config{Limits: l})
			if err == nil {
				err = s.Close(t.Context())
			}
			if tt.says == "" && err != nil || tt.says != "" && (!fault.Is(err, fault.InvalidArgument) || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

// TestCloseLate closes a server without a session when there is no time left. There is
// nothing that it could have failed to end.
func TestCloseLate(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // the failure is one of chance
		s, err := mcp.New(mcp.Config{Limits: mcp.DefaultLimits()})
		if err == nil {
			err = s.Close(over)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
