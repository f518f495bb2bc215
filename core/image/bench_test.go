package image_test

import (
	"fmt"
	"os"
	"testing"

	"sandbox/core/image"
)

// BenchmarkImport imports the tar that the variable LAYER names, each time into
// a new home below the directory HOMES. Nothing is deleted meanwhile, because
// ext4 is slow to create files where many were deleted a short time ago.
func BenchmarkImport(b *testing.B) {
	from, homes := os.Getenv("LAYER"), os.Getenv("HOMES")
	if from == "" || homes == "" {
		b.Skip("set LAYER to a tar, HOMES to a directory")
	}
	for i := 0; b.Loop(); i++ {
		s, err := image.Open(image.Config{Home: fmt.Sprintf("%s/%d-%d", homes, os.Getpid(), i), Unpacker: &unpacker{}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Import(b.Context(), "layer", from, nil); err != nil {
			b.Fatal(err)
		}
	}
}
