package shim

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sandbox/core/engine/record"
	"sandbox/core/options"
)

// A box's v1 groups get the limits that it was asked for, and no device before all
// are denied.
func TestSettings(t *testing.T) {
	t.Parallel()
	b := record.Box{UIDBase: firstID}
	b.ID = "box_settings"
	b.Options = options.Box{CPUs: 1, MemoryMiB: 64, Processes: 9}
	c, err := config(b, "/", "")
	if err != nil {
		t.Fatal(err)
	}
	for controller, want := range map[string][]setting{
		"cpu":     {{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "100000"}},
		"memory":  {{"memory.limit_in_bytes", "83886080"}, {"memory.memsw.limit_in_bytes", "83886080"}},
		"pids":    {{"pids.max", "73"}},
		"freezer": nil,
	} {
		got, err := settingsOf(controller, "", c.Cgroups.Resources)
		if controller == "memory" && c.Cgroups.MemorySwap == 0 {
			want = want[:1] // this kernel does not account for swap
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", controller, got, err, want)
		}
	}
	rules := deviceRules(c.Cgroups.Resources)
	if len(rules) < 2 || rules[0] != (setting{"devices.deny", "a *:* rwm"}) {
		t.Fatalf("the rules for devices are %v, want all denied first", rules)
	}
	for _, rule := range rules[1:] {
		if rule.file != "devices.allow" {
			t.Errorf("got the rule %v, want one that allows", rule)
		}
	}
	if !slices.Contains(rules, setting{"devices.allow", "c 1:3 rwm"}) { // /dev/null
		t.Errorf("the rules for devices are %v, want /dev/null allowed", rules)
	}
}

// A group that is new takes the CPUs of the group above it, and so do those below.
func TestInherit(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	below := filepath.Join(root, "sandbox")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, text := range map[string]string{root: "0-3\n", below: "\n"} {
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := cpusets(below, "2")
	if want := []setting{{"cpuset.cpus", "2"}, {"cpuset.mems", "0-3"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if text, err := os.ReadFile(filepath.Join(below, "cpuset.cpus")); err != nil || string(text) != "0-3\n" && string(text) != "0-3" {
		t.Errorf("the group above has the CPUs %q, %v", text, err)
	}
}
