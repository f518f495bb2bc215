package engine

import (
	"context"
	"slices"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
)

// Mains reads the main commands of a home's boxes. It is for the shim alone, which keeps
// their output.
type Mains struct{ c *Client }

// MainsOf returns the main commands of the boxes of a home.
func MainsOf(home string) Mains { return Mains{newClient(Config{Home: home}, paths{})} }

// Attach takes over the output of a run of a main command. Errors: those of
// [core.Execs].Attach.
func (m Mains) Attach(ctx context.Context, box, exec string, _ core.Position) (*core.Exec, error) {
	p, err := m.c.AttachWith(ctx, box, wire.Attach{ID: exec, Main: true})
	if err != nil {
		return nil, err
	}
	return core.NewExec(p), nil
}

// List returns the runs of a box's main command that its init still knows, oldest first.
// Errors: those of [core.Execs].Execs.
func (m Mains) List(ctx context.Context, box string) ([]api.Exec, error) {
	all, err := m.c.Execs(ctx, box)
	all = slices.DeleteFunc(all, func(e api.Exec) bool { return !e.Main })
	slices.Reverse(all)
	return all, err
}

// Exec returns what the init of a box knows of an exec.
func (m Mains) Exec(ctx context.Context, box, exec string) (api.Exec, error) {
	return m.c.FindExec(ctx, box, exec)
}

// Status returns the status of a box. Errors: BoxNotFound, Storage.
func (m Mains) Status(ctx context.Context, box string) (api.BoxStatus, error) {
	rec, err := m.c.Get(ctx, box)
	return rec.Status, err
}
