package main

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program returns a layer of one static program in the root, and a /tmp.
func program(path, name string) func(build string) ([]byte, error) {
	return func(build string) ([]byte, error) {
		content, err := os.ReadFile(filepath.Join(build, path))
		if err != nil {
			return nil, err
		}
		return archive([]entry{{name, string(content), 0o755, tar.TypeReg}, {"tmp/", "", 0o1777, tar.TypeDir}})
	}
}

// whole returns a layer that is a file of the build directory.
func whole(file string) func(build string) ([]byte, error) {
	return func(build string) ([]byte, error) { return os.ReadFile(filepath.Join(build, file)) }
}

// busybox returns a layer of Debian's busybox-static, with all its commands.
func busybox(string) ([]byte, error) {
	const path = "/bin/busybox"
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	commands, err := exec.Command(path, "--list").Output()
	if err != nil {
		return nil, err
	}
	entries := []entry{{"tmp/", "", 0o1777, tar.TypeDir}, {"root/", "", 0o700, tar.TypeDir}}
	for _, dir := range []string{"bin", "sbin", "usr", "usr/bin", "usr/sbin", "etc", "dev", "proc", "sys", "run", "var", "home"} {
		entries = append(entries, entry{dir + "/", "", 0o755, tar.TypeDir})
	}
	entries = append(entries,
		entry{"etc/passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", 0o644, tar.TypeReg},
		entry{"etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n", 0o644, tar.TypeReg},
		entry{"bin/busybox", string(content), 0o755, tar.TypeReg})
	for command := range strings.FieldsSeq(string(commands)) {
		if command != "busybox" {
			entries = append(entries, entry{"bin/" + command, "busybox", 0o777, tar.TypeSymlink})
		}
	}
	return archive(entries)
}

// entry is a file of a layer; content is the target of a link.
type entry struct {
	name, content string
	mode          int64
	kind          byte
}

func archive(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Typeflag: e.kind}
		switch e.kind {
		case tar.TypeReg:
			header.Size = int64(len(e.content))
		case tar.TypeSymlink:
			header.Linkname, e.content = e.content, ""
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
