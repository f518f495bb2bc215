package layer_test

import (
	"os"
	"path/filepath"
	"testing"

	"sandbox/core/image/layer"
)

// BenchmarkUnpack unpacks the plain tar that LAYER names.
func BenchmarkUnpack(b *testing.B) {
	name := os.Getenv("LAYER")
	if name == "" {
		b.Skip("set LAYER to a tar")
	}
	above := b.TempDir()
	for b.Loop() {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		dir := filepath.Join(above, "layer")
		if err := layer.Unpack(b.Context(), []string{"/proc/self/exe", "unpack"}, f, dir); err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
		b.StopTimer()
		_ = os.RemoveAll(dir)
		b.StartTimer()
	}
}
