package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed says, for each directory, which directories of the project its packages may
// import. "core/..." means core and all below it. A package has the row of the
// longest directory that it lies in, and may always import others of that row.
var allowed = map[string][]string{
	"api":              {"core/fault"},
	"auth":             {"api", "core/document", "core/fault", "core/ids", "core/store"},
	"backend":          {"api", "client", "core", "core/build", "core/build/recipe", "core/build/tree", "core/code", "core/local", "core/options", "core/fault", "core/ids", "core/image", "daemon/address", "profile", "spool"},
	"capi":             {"api", "backend", "client", "core", "core/code", "core/document", "core/local", "core/options", "core/fault", "core/feed", "hostcopy"},
	"cli":              {"api", "backend", "client", "core", "core/build/recipe", "core/build/tree", "core/code", "core/document", "core/local", "core/options", "core/fault", "core/image", "core/engine", "core/doctor", "daemon", "daemon/systemd", "mcp", "profile", "hostcopy"},
	"client":           {"api", "core/feed", "core/options", "core/fault", "core/sockets"},
	"cmd":              {"cli", "core", "core/engine/shim", "core/engine/shim/namespaces", "core/engine/delta", "core/engine/guest", "core/engine/link", "core/image/layer", "logs/embedded/chdb", "core/engine/transfer"},
	"console":          {"core/fault", "core/store"},
	"core":             {"api", "core/document", "core/fault", "core/feed", "core/ids", "core/options", "core/hostpath"},
	"core/code":        {"api", "core", "core/fault", "core/feed", "core/ids", "core/options"},
	"core/doctor":      {"core", "core/engine", "core/engine/rootless", "core/fault", "core/store"},
	"core/document":    {"core/fault"},
	"core/fault":       {},
	"core/feed":        {},
	"core/filelock":    {"core/fault"},
	"core/programs":    {"core/fault"},
	"core/hostpath":    {},
	"core/ids":         {},
	"core/image":       {"api", "core", "core/fault", "core/filelock", "core/image/layer", "core/options", "core/store"},
	"core/image/layer": {"api", "core/hostpath", "core/fault", "core/userns"},
	"core/local":       {"api", "core/...", "spool"},
	"core/options":     {"api", "core/document", "core/fault", "core/ids"},
	"core/landlock":    {},
	"core/seccomp":     {},
	"core/userns":      {},
	"core/sockets":     {},
	"core/store":       {"core/fault"},
	"core/enginetest":  {"api", "core", "core/fault", "core/ids", "core/options", "test/members"},
	"docs":             {},
	"daemon":           {"api", "auth", "backend", "console", "core", "core/code", "core/engine/kubernetes", "core/fault", "core/filelock", "core/local", "core/options", "core/sockets", "core/store", "daemon/address", "daemon/systemd", "httpd", "httpd/e2b", "httpd/share", "logs", "logs/clickhouse", "logs/boxlog", "logs/embedded", "logs/ingest", "mcp", "metrics", "profile", "spool"},
	"daemon/address":   {"core/store"},
	"daemon/systemd":   {"core/fault"},
	"examples_go":      {"core/local", "core/options"},
	"hostcopy":         {"api", "core", "core/fault"},
	"httpd":            {"api", "auth", "console", "core", "core/build", "core/build/recipe", "core/build/tree", "core/code", "core/document", "core/fault", "core/hostpath", "core/ids", "core/image", "core/options", "core/store", "docs", "httpd/cursor", "httpd/linger", "httpd/proxy", "httpd/reference", "httpd/share", "logs", "logs/ingest", "mcp", "metrics", "spool"},
	"httpd/cursor":     {},
	"httpd/e2b":        {"api", "auth", "core", "core/code", "core/document", "core/fault", "core/ids", "core/options", "httpd/cursor", "httpd/e2b/protocol", "httpd/linger", "httpd/proxy", "metrics", "spool"},
	"httpd/linger":     {},
	"httpd/proxy":      {"core/fault"},
	"httpd/reference":  {},
	"httpd/share":      {"core/fault", "core/ids", "core/options", "core/store"},
	"logs":             {"core/document", "core/fault", "logs/clickhouse", "logs/sql"},
	"logs/boxlog":      {"api", "core", "core/fault", "core/store", "logs/clickhouse", "logs/ingest", "spool"},
	"logs/ingest":      {"core/fault", "logs/clickhouse"},
	"logs/clickhouse":  {"core/fault"},
	"logs/embedded":    {"core/fault", "core/filelock", "core/landlock", "core/programs", "core/seccomp", "core/sockets"},
	"logs/sql":         {"logs/sql/ast", "logs/sql/check", "logs/sql/parse", "logs/sql/print"},
	"logs/sql/ast":     {},
	"logs/sql/check":   {"logs/sql/ast", "logs/sql/parse", "logs/sql/print"},
	"logs/sql/parse":   {"logs/sql/ast"},
	"logs/sql/print":   {"logs/sql/ast"},
	"mcp":              {"api", "backend", "client", "core", "core/document", "core/fault", "core/options"},
	"metrics":          {"api", "core", "core/document", "core/fault", "logs/clickhouse"},
	"profile":          {"core/fault"},
	"spool":            {"api", "core", "core/fault", "core/ids", "core/store"},
	"test":             {"api", "core/...", "packaging/parts"},
	"test/kubelet":     {},
	"packaging":        {"packaging/parts"},
	"packaging/parts":  {},

	"bindings":          {"core", "core/fault"},
	"bench":             {"bench/contestants", "bench/harness", "bench/measures"},
	"bench/contestants": {"backend", "bench/harness", "client", "core/...", "hostcopy", "profile", "test/account"},
	"bench/harness":     {},
	"bench/logs":        {},
	"bench/profile":     {"bench/contestants", "bench/harness"},
	"bench/measures":    {"bench/contestants", "bench/harness", "client", "core", "core/image", "core/local", "core/options", "hostcopy", "test/registry"},

	// What makes images of recipes.
	"core/build":        {"api", "core", "core/build/recipe", "core/build/tree", "core/fault", "core/image", "core/options"},
	"core/build/recipe": {"api", "core/document", "core/fault"},
	"core/build/tree":   {"core/fault"},

	// The engine in its halves: the library's (core/engine), what both speak, and
	// the programs behind it.
	"core/engine":                 {"api", "core", "core/engine/inits", "core/engine/process", "core/engine/record", "core/engine/rootless", "core/engine/wire", "core/fault", "core/feed", "core/filelock", "core/ids", "core/image/layer", "core/options", "core/programs", "core/sockets", "core/store"},
	"core/engine/account":         {},
	"core/engine/delta":           {"core/fault", "core/hostpath"},
	"core/engine/guest":           {"api", "core/engine/account", "core/engine/transfer", "core/engine/wire", "core/fault", "core/hostpath", "core/ids", "core/landlock", "core/seccomp", "core/userns"},
	"core/engine/inits":           {"api", "core", "core/engine/wire", "core/fault", "core/feed", "core/ids", "core/options"},
	"core/engine/kubernetes":      {"api", "core", "core/document", "core/engine/inits", "core/engine/link", "core/engine/wire", "core/fault", "core/hostpath", "core/ids", "core/options"},
	"core/engine/process":         {},
	"core/engine/link":            {"api", "core/engine/wire"},
	"core/engine/record":          {"api", "core", "core/engine/process", "core/engine/wire", "core/fault", "core/image/layer", "core/options", "core/store"},
	"core/engine/shim":            {"api", "core", "core/engine", "core/engine/process", "core/engine/record", "core/engine/rootless", "core/engine/shim/namespaces", "core/engine/shim/network", "core/engine/wire", "core/fault", "core/filelock", "core/ids", "core/hostpath", "core/image/layer", "core/options", "core/sockets", "core/store", "core/userns", "spool"},
	"core/engine/rootless":        {"core/fault"},
	"core/engine/shim/namespaces": {"core/engine/process", "core/engine/record", "core/engine/rootless", "core/engine/shim/network", "core/engine/wire", "core/fault", "core/filelock", "core/sockets"},
	"core/engine/shim/network":    {"core/fault", "core/filelock", "core/options"},
	"core/engine/transfer":        {"api", "core/engine/account", "core/engine/wire", "core/fault", "core/userns"},
	"core/engine/wire":            {"api", "core/fault", "core/sockets"},
}

// importers says which packages alone may import a module, directly, and why.
var importers = map[string]struct {
	dirs   []string
	reason string
}{
	"github.com/opencontainers/runc": {[]string{"core/engine/shim", "cmd/sandbox-shim"},
		"it runs /proc/self/exe again and has a C constructor: in a library that would be the host program"},
	"github.com/opencontainers/cgroups": {[]string{"core/engine/shim"},
		"the shim alone makes, limits and removes the cgroups of boxes"},
	"github.com/vishvananda/netlink": {[]string{"core/engine/shim/network", "bench/contestants", "bench/measures"},
		"the shim alone changes the host's network, and takes back what a dead one left"},
	"github.com/vishvananda/netns": {[]string{"core/engine/shim/network"},
		"a thread that enters another network namespace must be the shim's, never one of the host program"},
	"github.com/google/nftables": {[]string{"core/engine/shim/network", "core/doctor", "bench/measures"},
		"the shim alone changes the host's rules; the doctor reads them"},
	"./logs/embedded/chdb": {[]string{"cmd/sandbox-logs"},
		"it loads a library at run time, which a static program can't"},
	"github.com/ClickHouse/clickhouse-go/v2": {[]string{"logs/clickhouse"},
		"queries go one way, with the settings that make an answer complete or an error"},
	"github.com/moby/buildkit": {[]string{"core/build/recipe"},
		"recipes are read in one place, and everything else of it is a builder"},
}

// unlinked says which modules and packages a package must not even link, through
// whatever it imports. The library's half of the engine asks the shim for all that needs them.
var unlinked = map[string][]string{
	"./capi":             append(shimModules, "./httpd", "./logs", "./metrics", "./auth"), // the daemon's parts: it talks to one
	"./core/engine":      shimModules,
	"./core/local":       shimModules,
	"./cmd/sandbox":      {"github.com/opencontainers/runc", "github.com/opencontainers/cgroups", "github.com/vishvananda"}, // its doctor reads the host's rules
	"./cmd/sandbox-init": shimModules,
	"./cmd/sandbox-pod":  shimModules,
}

// shimModules are what the shim makes boxes with.
var shimModules = []string{"github.com/opencontainers/runc", "github.com/opencontainers/cgroups", "github.com/vishvananda", "github.com/google/nftables"}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		row := rowOf(p.ImportPath)
		if row == "" {
			t.Errorf("%s has no row in the table: may it stand there?", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if inside, ok := strings.CutPrefix(imported, "./"); ok && rowOf(imported) != row && !matches(allowed[row], inside) {
				t.Errorf("%s imports %s, which %s may not", p.ImportPath, imported, row)
			}
			for module, rule := range importers {
				if below(imported, module) && !slices.Contains(rule.dirs, strings.TrimPrefix(p.ImportPath, "./")) {
					t.Errorf("%s imports %s, which is for %v alone: %s", p.ImportPath, imported, rule.dirs, rule.reason)
				}
			}
		}
		for _, module := range unlinked[p.ImportPath] {
			if slices.ContainsFunc(p.Deps, func(dep string) bool { return below(dep, module) }) {
				t.Errorf("%s links %s, which is not for it", p.ImportPath, module)
			}
		}
	}
}

// packages returns the project's packages, without what only their tests import.
// Their paths begin with "./", whatever the module is called.
func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", top+"...").Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	name := module(t)
	own := func(path string) string {
		if below(path, name) {
			return "." + path[len(name):]
		}
		return path
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = own(p.ImportPath)
		for _, list := range [][]string{p.Imports, p.Deps} {
			for i := range list {
				list[i] = own(list[i])
			}
		}
		all = append(all, p)
	}
}

// module returns the path of this tree's module, which go.mod begins with.
func module(t *testing.T) string {
	t.Helper()
	first, _, _ := strings.Cut(read(t, "go.mod"), "\n")
	return strings.TrimPrefix(first, "module ")
}

// rowOf returns the longest directory of the table that the package lies in.
func rowOf(path string) string {
	row := ""
	for dir := range allowed {
		if below(path, "./"+dir) && len(dir) > len(row) {
			row = dir
		}
	}
	return row
}

func matches(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		parent, tree := strings.CutSuffix(dir, "/...")
		return path == dir || tree && below(path, parent)
	})
}

func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
