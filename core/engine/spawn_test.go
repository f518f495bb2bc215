package engine

import (
	"io"
	"os"
	"slices"
	"testing"
)

// A program is started whatever number its descriptor has: among those that it gets
// itself, too, as in a host that has few files open.
func TestSpawnFromLowDescriptor(t *testing.T) {
	t.Parallel()
	exe, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	files := slices.Repeat([]*os.File{null}, int(exe.Fd())+1)
	files[1] = theirs
	err = spawn(exe, []string{"sh", "-c", "echo started"}, nil, files...)
	_ = theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(out); string(got) != "started\n" || err != nil {
		t.Errorf("it wrote %q, %v", got, err)
	}
}
