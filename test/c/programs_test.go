package c_test

import "testing"

// TestPrograms runs each program: it succeeds, and not a byte is written,
// neither by it nor by the library.
func TestPrograms(t *testing.T) {
	t.Parallel()
	programs := []struct {
		name  string
		image bool // it needs the image "default"
	}{
		{"nulls", false},
		{"home", false},
		{"options", false},
		{"handles", false},
		{"lifecycle", false},
		{"exec", false},
		{"execution", false},
		{"files", false},
		{"code", false},
		{"build", false},
		{"ports", false},
		{"snapshots", false},
		{"text", false},
		{"callback", false},
		{"threads", false},
		{"process", false},
		{"leaks", false},
		{"simple", true},
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			if p.image {
				h.importDefault(t)
			}
			cmd := h.command(t, compile(t, "programs/"+p.name+".c", sanitizers...))
			if out := run(t, cmd); out != "" {
				t.Errorf("it wrote %q", out)
			}
		})
	}
}

// TestStacks calls from another stack. It is compiled without sanitizers, which
// don't follow the change of stacks.
func TestStacks(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if out := run(t, h.command(t, compile(t, "programs/stacks.c"))); out != "" {
		t.Errorf("it wrote %q", out)
	}
}
