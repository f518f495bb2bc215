package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies this program into a directory, in one step. An init container does so
// where the cluster has no image volumes.
func install(dir string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	to, err := os.CreateTemp(dir, ".sandbox-pod-*")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	_, err = io.Copy(to, self)
	err = errors.Join(err, to.Chmod(0o755), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), filepath.Join(dir, "sandbox-pod"))
	}
	if err != nil {
		_ = os.Remove(to.Name())
		return fmt.Errorf("install: %w", err)
	}
	return nil
}
