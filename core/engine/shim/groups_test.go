package shim

import (
	"errors"
	"os/exec"
	"testing"
)

// TestEndOfAnother ends a process that is not in the group, as one whose number was in the
// group's list, and then became its: it goes on, and nobody waits for its end.
func TestEndOfAnother(t *testing.T) {
	t.Parallel()
	another := exec.Command("cat") // runs until its input ends
	input, err := another.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := another.Start(); err != nil {
		t.Fatal(err)
	}
	end(t.TempDir(), another.Process.Pid)
	if err := errors.Join(input.Close(), another.Wait()); err != nil {
		t.Errorf("a process that is not in the group: %v", err)
	}
}
