package contestants

import (
	"fmt"
	"os"

	"sandbox/bench/harness"
)

// Resident returns the daemon's resident memory. All of its pages count, as the
// bars require.
func (s *Service) Resident() (int64, error) { return harness.StatusBytes(s.cmd.Process.Pid, "VmRSS:") }

// Growth returns the daemon's memory before f ran, and its peak while f ran.
func (s *Service) Growth(f func() error) (before, peak int64, err error) {
	pid := s.cmd.Process.Pid
	if before, err = s.Resident(); err != nil {
		return 0, 0, err
	}
	// Writing 5 resets the peak to what is in use now (proc(5)).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return 0, 0, err
	}
	if err := f(); err != nil {
		return 0, 0, err
	}
	peak, err = harness.StatusBytes(pid, "VmHWM:")
	return before, peak, err
}

// Alone returns a row for a measurement without peers.
func (s *Service) Alone(what, unit string, n int) harness.Row {
	c := s.As(what, nil)
	return harness.Row{Contestant: c.Name, Version: c.Version, Isolation: c.Isolation, Unit: unit, N: n}
}
