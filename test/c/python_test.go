package c_test

import (
	"path/filepath"
	"testing"
)

// TestPython runs the tests that use the library from Python.
func TestPython(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t, "python3", "-B", root+"/test/python/test_sandbox.py")
	cmd.Env = append(cmd.Env, "LIBSANDBOX="+filepath.Join(dir, "libsandbox.so.0"), "LATE_HOME="+t.TempDir())
	run(t, cmd)
}
