package namespaces

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"

	"sandbox/core/engine/process"
	"sandbox/core/engine/rootless"
)

// end ends the process that keeps the namespaces.
func (s *spaces) end() {
	if h, err := process.Open(s.rest); err == nil {
		_ = h.Kill()
		_ = h.Wait()
		_ = h.Close()
	}
	_ = os.Remove(s.file())
	left, _ := filepath.Glob(filepath.Join(s.home, "engine", "sandbox-network-*"))
	for _, file := range left { // of namespaces that are no more
		_ = os.Remove(file)
	}
}

// enterGroup moves this process into a group of its own, as it must not end with the
// service of the program that happened to start it. leave moves it out and removes the
// group. Where that fails, the process stays where it is.
func enterGroup(home string) (leave func()) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(home))
	given, _ := rootless.Delegated() // it was checked just before
	name := fmt.Sprintf("outside-%x", h.Sum64())
	for _, dir := range given {
		if os.MkdirAll(filepath.Join(dir, name), 0o755) == nil {
			_ = writeProcs(filepath.Join(dir, name))
		}
	}
	return func() {
		for _, dir := range given {
			_ = writeProcs(dir)
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
}

func writeProcs(dir string) error {
	return errors.Join(os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0))
}
