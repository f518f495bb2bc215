package leak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// warmUp makes the Go runtime open the descriptors that it opens only once.
func warmUp() {
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
}

// descriptors names those of this process.
func descriptors() []string {
	const dir = "/proc/self/fd"
	entries, _ := os.ReadDir(dir)
	var list []string
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && !strings.HasPrefix(target, "/proc/") { // what reads this list
			list = append(list, "descriptor "+e.Name()+" -> "+target)
		}
	}
	return list
}

// mounts names those of this project in this process's mount namespace.
func mounts() []string {
	var list []string
	for line := range strings.Lines(read("/proc/self/mountinfo")) {
		if strings.Contains(line, os.TempDir()+"/") || strings.Contains(line, "sandbox") {
			list = append(list, "mount "+strings.TrimSpace(line))
		}
	}
	return list
}

// loops names the loop devices of files in the directory of temporary ones.
func loops() []string {
	var list []string
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file") // only a bad pattern fails
	for _, name := range files {
		if path := strings.TrimSpace(read(name)); strings.HasPrefix(path, os.TempDir()+"/") {
			list = append(list, "loop device of "+path)
		}
	}
	return list
}

// cgroups returns those of boxes. This suite is asked for those that no process is
// in: a living box has its processes there, and those are looked at themselves.
func cgroups() map[string]thing {
	all := map[string]thing{}
	for _, pattern := range []string{"/sys/fs/cgroup/sandbox/*", "/sys/fs/cgroup/*/sandbox/*"} {
		found, _ := filepath.Glob(pattern)
		for _, dir := range found {
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				all[dir] = thing{"cgroup " + dir, !populated(dir)}
			}
		}
	}
	return all
}

func populated(cgroup string) bool {
	found := false
	_ = filepath.WalkDir(cgroup, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "cgroup.procs" && read(path) != "" {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// most is how many files are named: enough to tell what made them.
const most = 20

// dirs names what is left in the directory of all temporary directories: each file, and
// each directory that is empty.
func dirs(dir string) []string {
	var list []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if e.IsDir() {
			if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
				return nil // what is in it is named
			}
		}
		rel, err := filepath.Rel(dir, path)
		list = append(list, "in the temporary directory: "+rel)
		return err
	})
	if err != nil {
		list = append(list, err.Error())
	}
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("in the temporary directory: %d more", more))
	}
	return list
}

// read returns "" for what is gone meanwhile.
func read(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
