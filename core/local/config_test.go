package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/fault"
)

func TestConfigFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, problem, debian, node string }{
		"none":           {"", "", "docker.io/library/debian:latest", "docker.io/library/node:lts-slim"},
		"an alias":       {"pull = \"never\"\n[aliases]\ndebian = \"host/mine:1\"\nnode = \"\"\n", "", "host/mine:1", ""},
		"unknown":        {"puul = \"never\"\n[alias]\nx = 1\n", `no setting is called "puul"`, "", ""},
		"a policy":       {"pull = \"always\"\n", "missing or never", "", ""},
		"a ceiling":      {"disk_ceiling_gb = 20\n", "", "docker.io/library/debian:latest", "docker.io/library/node:lts-slim"},
		"below nothing":  {"disk_ceiling_gb = -1\n", "disk_ceiling_gb is -1", "", ""},
		"beyond disks":   {"disk_ceiling_gb = 65537\n", "disk_ceiling_gb is 65537", "", ""},
		"half a GB":      {"disk_ceiling_gb = 0.5\n", "disk_ceiling_gb", "", ""},
		"a floor":        {"disk_floor_mib = 0\n", "", "docker.io/library/debian:latest", "docker.io/library/node:lts-slim"},
		"a cellar":       {"disk_floor_mib = -1\n", "disk_floor_mib is -1", "", ""},
		"processes":      {"[limits]\nprocesses = 100\n", "", "docker.io/library/debian:latest", "docker.io/library/node:lts-slim"},
		"no processes":   {"[limits]\nprocesses = 0\n", "limits.processes is 0, want 1 to 1048576", "", ""},
		"too many":       {"[limits]\nprocesses = 1048577\n", "limits.processes is 1048577", "", ""},
		"another limit":  {"[limits]\nthreads = 1\n", `no setting is called "limits.threads"`, "", ""},
		"a pool":         {"pool = 2\n", "", "docker.io/library/debian:latest", "docker.io/library/node:lts-slim"},
		"a lake":         {"pool = 65\n", "pool is 65, want 0 (none) to 64", "", ""},
		"not TOML":       {"pull = ", "config.toml", "", ""},
		"a wrong type":   {"aliases = 7", "aliases", "", ""},
		"a wrong alias":  {"[aliases]\n\"a/b\" = \"x\"\n", `alias "a/b"`, "", ""},
		"binary garbage": {"\x00\xff", "config.toml", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := readFile(home)
			if c.problem != "" {
				if !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("%v, want config_error with %q", err, c.problem)
				}
				return
			}
			if all := f.aliases(false); err != nil || all["debian"] != c.debian || all["node"] != c.node {
				t.Errorf("%v, %v", all, err)
			}
		})
	}
}

func TestWithoutConfigFile(t *testing.T) {
	t.Parallel()
	f, err := readFile(filepath.Join(t.TempDir(), "nowhere"))
	if err != nil || f.Pull != "missing" || len(f.aliases(false)) != 7 {
		t.Errorf("%+v, %v", f, err)
	}
	if all := f.aliases(true); len(all) != 1 || all["default"] == "" {
		t.Errorf("%v, want only default beside registries", all)
	}
}
