package shim

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// A start that failed for want of descriptors or room says so, whatever the step
// took it for.
func TestExplain(t *testing.T) {
	t.Parallel()
	short := fmt.Errorf("open: %w", unix.EMFILE)
	for name, tt := range map[string]struct {
		err    error
		before string
		want   fault.Kind
	}{
		"descriptors":        {short, "", fault.ResourceExhausted},
		"as unsupported":     {fault.Wrap(fault.Unsupported, short, "map ids"), "", fault.ResourceExhausted},
		"as upstream":        {fault.Wrap(fault.Upstream, short, "take a port"), "", fault.ResourceExhausted},
		"as text":            {errors.New("make a socket: too many open files"), "", fault.ResourceExhausted},
		"a child's":          {fmt.Errorf("fork/exec: %w", unix.EBADF), "", fault.ResourceExhausted},
		"a full disk":        {unix.ENOSPC, "", fault.Storage},
		"room since then":    {fmt.Errorf("start the box's init: %w", io.EOF), "space", fault.Storage},
		"init":               {io.EOF, "", fault.Engine},
		"what it is":         {fault.New(fault.PortInUse, "taken"), "space", fault.PortInUse},
		"really unsupported": {fault.New(fault.Unsupported, "no overlay"), "", fault.Unsupported},
	} {
		l := launcher{home: t.TempDir(), log: slog.New(slog.DiscardHandler)}
		if err := l.explain(tt.err, l.home, tt.before); !fault.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}
