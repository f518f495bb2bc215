package fake

import (
	"context"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// WatchFiles fails: this engine sees nothing of its files.
func (e *Engine) WatchFiles(_ context.Context, boxID string, o options.WatchFiles) (*core.FileWatch, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := e.running(boxID); err != nil {
		return nil, err
	}
	return nil, fault.New(fault.Unsupported, "this engine has no watches")
}
