package shim

import (
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// Unpack is the body of the child that extracts one layer.
func Unpack() error { return fault.New(fault.Unsupported, "not yet") }

func (k *keeper) answerUnpack(wire.Frame) error {
	return fault.New(fault.Unsupported, "not yet")
}
