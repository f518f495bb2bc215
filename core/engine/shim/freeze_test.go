package shim

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandbox/core/fault"
)

// A group whose processes do not all stand still is not waited for longer than the
// bound; one whose processes do is not waited for at all.
func TestFreezeIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		freeze func(string, time.Duration) error
		files  map[string]string
		want   error
	}{
		"moving":        {freeze, map[string]string{"cgroup.freeze": "", "cgroup.events": "populated 1\nfrozen 0\n"}, errMoving},
		"still":         {freeze, map[string]string{"cgroup.freeze": "", "cgroup.events": "populated 1\nfrozen 1\n"}, nil},
		"gone":          {freeze, nil, os.ErrNotExist},
		"moving, of v1": {thawed, map[string]string{"freezer.state": ""}, errMoving},
		"still, of v1":  {freezeV1, map[string]string{"freezer.state": ""}, nil},
		"gone, of v1":   {freezeV1, nil, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.freeze(dir, 20*time.Millisecond); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if !fault.Is(errMoving, fault.Timeout) {
		t.Errorf("%v is no timeout", errMoving)
	}
}

// thawed is freezeV1 of a group that keeps no state.
func thawed(dir string, bound time.Duration) error {
	state := filepath.Join(dir, "freezer.state")
	if err := errors.Join(os.Remove(state), os.Symlink("/dev/null", state)); err != nil {
		return err
	}
	return freezeV1(dir, bound)
}
