// Package parts knows what of others the project ships: the modules of Go that its
// programs and its library are linked with, and the packages of npm that its page and
// its package for Node.js are made of or ask for.
package parts

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// Part is a module or a package.
type Part struct {
	Name     string
	Version  string
	Dir      string   // of its sources, if it is a module
	Licences []string // as NOTICE or the package's own manifest has them, names of SPDX
	SHA512   string   // of what the registry has, in hex; "" for a module, which go.sum holds
}

// shipped are the packages of Go that everything that is installed is linked of.
var shipped = []string{"./capi", "./cmd/sandbox", "./cmd/sandbox-shim", "./cmd/sandbox-init", "./cmd/sandbox-pod", "./cmd/sandbox-logs", "./logs/clickhouse"}

// Modules returns the modules that are linked, in the order of their names. top is the
// directory of the project, and notice the text of its file NOTICE.
func Modules(top, notice string) ([]Part, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"}, shipped...)...)
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules: %w", err)
	}
	licences := Licences(notice)
	var all []Part
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 {
			all = append(all, Part{Name: f[0], Version: f[1], Dir: f[2], Licences: licences[f[0]]})
		}
	}
	return sorted(all), nil
}

// Licences returns the licences that NOTICE says of each module.
func Licences(notice string) map[string][]string {
	all := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z0-9.]+/\S+) +(\S.*)$`).FindAllStringSubmatch(notice, -1) {
		all[m[1]] = strings.FieldsFunc(strings.ReplaceAll(m[2], " and ", ","), func(r rune) bool { return r == ',' || r == ' ' })
	}
	return all
}

// Packages returns the packages of npm that a package-lock.json has, without those that
// only building and testing need.
func Packages(lock []byte) ([]Part, error) {
	var file struct {
		Packages map[string]struct {
			Version, License, Integrity string
			Dev, DevOptional, Optional  bool
		}
	}
	if err := json.Unmarshal(lock, &file); err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}
	var all []Part
	for path, p := range file.Packages {
		_, name, in := strings.Cut(path, "node_modules/")
		if !in || p.Dev {
			continue
		}
		part := Part{Name: name, Version: p.Version, Licences: strings.Split(strings.Trim(p.License, "()"), " OR ")}
		if sum, is := strings.CutPrefix(p.Integrity, "sha512-"); is {
			bytes, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("the integrity of %s: %w", name, err)
			}
			part.SHA512 = hex.EncodeToString(bytes)
		}
		all = append(all, part)
	}
	return sorted(all), nil
}

// sorted returns each part once, by name.
func sorted(all []Part) []Part {
	slices.SortFunc(all, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Part) bool { return a.Name == b.Name })
}
