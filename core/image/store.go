// Package image keeps unpacked images: their layers, names and settings.
package image

import (
	"context"
	"io"

	"sandbox/core"
	"sandbox/core/fault"
)

// Unpacker does the privileged part of making a layer.
type Unpacker interface {
	// Unpack reads a plain tar stream to its end and extracts it into the
	// new folder dir (inside the home), in a child process that holds no
	// more right than that needs. dir does not exist on failure.
	// Errors: Image (a hostile or damaged tar), Storage.
	Unpack(ctx context.Context, tar io.Reader, dir string) error
}

// Store is the images of one home. It is safe for concurrent use, also by
// several processes.
type Store struct {
	home   string
	unpack Unpacker
}

// Open opens the image store of a home. It makes nothing.
func Open(home string, u Unpacker) (*Store, error) { return &Store{home: home, unpack: u}, nil }

// Resolve gives the image that ref names. Errors: Image.
func (s *Store) Resolve(ctx context.Context, ref string) (core.Image, error) {
	return core.Image{}, fault.New(fault.Image, "no image %q in the store", ref)
}
