package c_test

import "testing"

// TestPython runs the tests that use the library from Python.
func TestPython(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	run(t, h.command(t, "python3", "-B", root+"/test/python/test_sandbox.py"))
}
