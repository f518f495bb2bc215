package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated wants the Go files to be those of the .proto files.
func TestGenerated(t *testing.T) {
	t.Parallel()
	files, err := generated(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what generate writes: run make docs (%v)", name, err)
		}
	}
	if len(files) != 2 {
		t.Errorf("%d files", len(files))
	}
}
