package backend

import (
	"context"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/options"
)

// This file runs code in boxes of this host.

func (h hostBoxes) RunCode(ctx context.Context, ref string, o options.Code) (*code.Run, error) {
	return onCode(ctx, h, ref, o, h.contexts.Run)
}

func (h hostBoxes) CreateCodeContext(ctx context.Context, ref string, o options.CodeContext) (api.CodeContext, error) {
	return onCode(ctx, h, ref, o, h.contexts.Create)
}

func (h hostBoxes) CodeContexts(ctx context.Context, ref string) ([]api.CodeContext, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return nil, err
	}
	return h.contexts.List(ctx, b)
}

func (h hostBoxes) CodeContext(ctx context.Context, ref, id string) (api.CodeContext, error) {
	return onCode(ctx, h, ref, id, h.contexts.Get)
}

func (h hostBoxes) InterruptCode(ctx context.Context, ref, id string) (api.CodeContext, error) {
	return onCode(ctx, h, ref, id, h.contexts.Interrupt)
}

func (h hostBoxes) RestartCodeContext(ctx context.Context, ref, id string) (api.CodeContext, error) {
	return onCode(ctx, h, ref, id, h.contexts.Restart)
}

func (h hostBoxes) RemoveCodeContext(ctx context.Context, ref, id string) error {
	b, err := h.box(ctx, ref)
	if err != nil {
		return err
	}
	return h.contexts.Remove(ctx, b, id)
}

// onCode calls do with a box.
func onCode[O, T any](ctx context.Context, h hostBoxes, ref string, o O, do func(context.Context, *core.Box, O) (T, error)) (T, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		var none T
		return none, err
	}
	return do(ctx, b, o)
}
