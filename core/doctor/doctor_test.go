package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/record"
)

// Damaged records that were set aside are reported, but do not make the host
// unfit.
func TestRecordsAside(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	file := filepath.Join(home, "records", "box_aaaaaaaaaaaaaaaaaaaa.damaged")
	if found, missing := records(t.Context(), engine.Config{Home: home}); missing != nil {
		t.Errorf("without any: %s, %+v", found, missing)
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, missing := records(t.Context(), engine.Config{Home: home}); missing == nil || !strings.Contains(missing.missing, file) {
		t.Errorf("got %+v", missing)
	}
}

func TestGenerational(t *testing.T) {
	t.Parallel()
	for text, on := range map[string]bool{"0x0000\n": false, "0x0007\n": true, "0x0001\n": true, "0x0006\n": false, "y\n": true} {
		if found, missing := generational(text); (missing != nil) != on {
			t.Errorf("%q: %s, %+v", text, found, missing)
		}
	}
}

// TestThisHost needs root, because it mounts. The tests of this project run on
// hosts that can run boxes, so only the programs may be missing.
func TestThisHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root: the checks mount an overlay")
	}
	dir := t.TempDir()
	before := mounts(t)
	for _, c := range Run(context.Background(), engine.Config{Home: filepath.Join(dir, "not", "there")}) {
		if c.Required && !c.OK && c.Name != "programs" {
			t.Errorf("%+v", c)
		}
		if c.OK == (c.Missing != "") {
			t.Errorf("%s is ok (%v) and lacks %q", c.Name, c.OK, c.Missing)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the home: %v, %v", left, err)
	}
	if after := mounts(t); after != before {
		t.Errorf("%d mounts before and %d after", before, after)
	}
}

func mounts(t *testing.T) int {
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestUnfitHome(t *testing.T) {
	t.Parallel()
	for _, check := range []look{overlay, idMapped} {
		if _, missing := check(context.Background(), engine.Config{Home: "/proc/nope"}); missing == nil || missing.fix == "" {
			t.Errorf("a home in /proc lacks %+v", missing)
		}
	}
}

func TestAtLeast(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]bool{
		"5.19.0": true, "5.18.99": false, "6.1.0-13-amd64": true, "6.18-rc1": true, "10.0": true, "4.20": false, "5.19": true,
		"": false, "x.y": false, "6": true, "5": false,
	} {
		if got := atLeast(release, 5, 19); got != want {
			t.Errorf("atLeast(%q, 5, 19) = %v", release, got)
		}
	}
}

func TestHierarchy(t *testing.T) {
	t.Parallel()
	v2 := &mountinfo.Info{Mountpoint: "/sys/fs/cgroup"}
	tests := []struct {
		h      hierarchy
		layout string
		absent []string
		fix    string
	}{
		{hierarchy{}, "none", []string{"cpu", "memory", "pids", "freezer"}, "cgroup_enable=cpu"},
		{hierarchy{unified: v2, v2: []string{"cpu", "memory", "pids", "io"}}, "v2", nil, ""},
		{hierarchy{unified: v2, v2: []string{"cpu", "pids"}}, "v2", []string{"memory"}, "cgroup_enable=memory"},
		{hierarchy{unified: v2, v1: []string{"rw", "cpu", "memory"}, v2: []string{"pids"}}, "hybrid", nil, ""},
		{hierarchy{v1: []string{"cpu", "memory", "pids"}}, "v1", []string{"freezer"}, "-o freezer"},
	}
	for _, test := range tests {
		_, absent := test.h.split()
		if test.h.layout() != test.layout || !slices.Equal(absent, test.absent) {
			t.Errorf("%+v: %s without %v, want %s without %v", test.h, test.h.layout(), absent, test.layout, test.absent)
		}
		if absent != nil && !strings.Contains(test.h.enable(absent), test.fix) {
			t.Errorf("%v is mended by %q, want %q", absent, test.h.enable(absent), test.fix)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	if !Fit([]Check{{OK: true, Required: true}, {OK: false}}) {
		t.Error("what is not required made the host unfit")
	}
	if Fit([]Check{{OK: true, Required: true}, {Required: true}}) {
		t.Error("a host without what is required is fit")
	}
}

// Below the floor no box is made. The check of the disk says so and names the
// setting.
func TestDiskFloor(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if found, missing := disk(t.Context(), engine.Config{Home: home, DiskFloorMiB: engine.DefaultDiskFloor}); missing != nil {
		t.Errorf("the usual floor: %s, %+v", found, missing)
	}
	if _, missing := disk(t.Context(), engine.Config{Home: home, DiskFloorMiB: 1 << 30}); missing == nil || !strings.Contains(missing.fix, "disk_floor_mib") {
		t.Errorf("got %+v", missing)
	}
}

// The boxes that take most of the disk are named. They are something to mend once
// the disk gets full.
func TestGrowth(t *testing.T) {
	t.Parallel()
	const id = "box_aaaaaaaaaaaaaaaaaaaa"
	c := engine.Config{Home: t.TempDir(), DiskFloorMiB: 1 << 30}
	if found, missing := growth(t.Context(), c); missing != nil {
		t.Errorf("without boxes: %s, %+v", found, missing)
	}
	dir := record.Dir(c.Home, id)
	err := errors.Join(record.Open(c.Home).Put(id, record.Box{Record: core.Record{ID: id}}, false),
		os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), make([]byte, 2<<20), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if found, missing := growth(t.Context(), c); !strings.Contains(found, id+" 2 MiB") || missing == nil || !strings.Contains(missing.fix, "disk_ceiling_gb") {
		t.Errorf("low on space: %s, %+v", found, missing)
	}
	c.DiskFloorMiB = 0
	if found, missing := growth(t.Context(), c); !strings.Contains(found, id+" 2 MiB") || missing != nil {
		t.Errorf("with space: %s, %+v", found, missing)
	}
}
