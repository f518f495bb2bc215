// Command images writes the images that the tests of a cluster use, as archives
// that containerd imports:
//
//	images BUILD DIR
//
// BUILD is the directory that the project is built into, DIR is where NAME.tar of
// each image goes. Their layers are not compressed, as they go no further.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image is one to be written: its layer is what a function makes of the build directory.
type image struct {
	file, reference string
	layer           func(build string) ([]byte, error)
	config          v1.Config
}

var images = []image{
	{"pause", "localhost/pause:1", program("kubernetes/bin/pause", "pause"), v1.Config{Entrypoint: []string{"/pause"}}},
	{"busybox", "localhost/busybox:1", busybox, v1.Config{Cmd: []string{"/bin/sh"}, Env: []string{"PATH=/bin"}}},
	{"sandbox-pod", "localhost/sandbox-pod:dev", program("sandbox-pod", "sandbox-pod"), v1.Config{Entrypoint: []string{"/sandbox-pod"}}},
	// For the suite of engines, with the settings that it wants of an image.
	{"enginetest", "localhost/enginetest:1", busybox, v1.Config{Env: []string{"PATH=/bin", "FROM=image", "ONLY_IMAGE=1", "HOME=/image"}, WorkingDir: "/usr", User: "nobody"}},
	{"sandbox", "localhost/sandbox:dev", program("sandbox", "sandbox"), v1.Config{Entrypoint: []string{"/sandbox"}, Env: []string{"HOME=/tmp"}, User: "65532:65532"}},
	// The name that containerd takes a bare "default" for.
	{"default", "docker.io/library/default:latest", whole("debian.tar"), v1.Config{Cmd: []string{"/bin/bash"}, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: images BUILD DIR")
		os.Exit(2)
	}
	for _, i := range images {
		if err := i.write(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintf(os.Stderr, "images: writing %s: %v\n", i.reference, err)
			os.Exit(1)
		}
	}
}

// write makes the archive; it appears whole or not at all.
func (i image) write(build, dir string) error {
	content, err := i.layer(build)
	if err != nil {
		return err
	}
	made, err := mutate.AppendLayers(empty.Image, static.NewLayer(content, types.DockerUncompressedLayer))
	if err != nil {
		return err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Config = runtime.GOARCH, "linux", i.config
	if made, err = mutate.ConfigFile(made, config); err != nil {
		return err
	}
	reference, err := name.ParseReference(i.reference)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, i.file+".tar")
	if err := tarball.WriteToFile(file+".part", reference, made); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}
