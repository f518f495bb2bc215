package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"sandbox/core/fault"
	"sandbox/core/store"
)

type note struct {
	Text string `json:"text"`
}

func TestRecordsComeBack(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: filepath.Join(t.TempDir(), "new", "directory")}
	for _, durable := range []bool{false, true} {
		for _, text := range []string{"one", "two"} {
			if err := d.Put("k", note{text}, durable); err != nil {
				t.Fatal(err)
			}
			if got, err := d.Get("k"); err != nil || got.Text != text {
				t.Errorf("Get = %v, %v, want %q", got, err, text)
			}
		}
	}
	if left, _ := os.ReadDir(d.Path); len(left) != 1 {
		t.Errorf("files in the directory: %v, want one", left)
	}
}

func TestListIsInOrderAndIgnoresWhatIsNoRecord(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: t.TempDir()}
	for _, k := range []string{"b", "a", "c"} {
		if err := d.Put(k, note{k}, false); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(d.Path, ".tmp-1.json"), "{")
	write(t, filepath.Join(d.Path, "lock"), "")
	got, damaged, err := d.List()
	if want := []note{{"a"}, {"b"}, {"c"}}; err != nil || damaged != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("List = %v, %v, want %v", got, err, want)
	}
	if err := d.Sweep(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(d.Path); len(left) != 4 {
		t.Errorf("after Sweep: %v, want three records and the lock", left)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: filepath.Join(t.TempDir(), "none")}
	if _, err := d.Get("k"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Get: %v, want os.ErrNotExist", err)
	}
	if all, damaged, err := d.List(); len(all) != 0 || len(damaged) != 0 || err != nil {
		t.Errorf("List = %v, %v, want nothing", all, err)
	}
	if err := d.Delete("k"); err != nil {
		t.Errorf("Delete: %v, want nil", err)
	}
	if err := d.Sweep(); err != nil {
		t.Errorf("Sweep: %v, want nil", err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: t.TempDir()}
	if err := errors.Join(d.Put("k", note{}, false), d.Delete("k")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get("k"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Get after Delete: %v, want os.ErrNotExist", err)
	}
}

func TestDamagedRecordIsNamedAndHidesNoOther(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: t.TempDir()}
	if err := d.Put("good", note{"x"}, false); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(d.Path, "bad.json")
	write(t, bad, `{"text":`)
	all, damaged, err := d.List()
	if err != nil || len(all) != 1 || len(damaged) != 1 || damaged[0].Key != "bad" || damaged[0].At.IsZero() {
		t.Fatalf("List = %v, %v, %v, want the good one, and the bad one beside it", all, damaged, err)
	}
	if err := store.Errors(damaged); !fault.Is(err, fault.Storage) || !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), bad) {
		t.Errorf("damage: %v, want a storage_error naming %s", err, bad)
	}
	if _, err := d.Get("bad"); !fault.Is(err, fault.Storage) || !strings.Contains(err.Error(), bad) {
		t.Errorf("Get: %v, want a storage_error naming %s", err, bad)
	}
}

// A damaged record that was set aside no longer counts as a record, and is not
// lost.
func TestSetAside(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: t.TempDir()}
	write(t, filepath.Join(d.Path, "bad.json"), `{"text":`)
	aside, err := d.SetAside("bad")
	if err != nil {
		t.Fatal(err)
	}
	if all, damaged, err := d.List(); len(all) != 0 || len(damaged) != 0 || err != nil {
		t.Errorf("List = %v, %v, %v, want nothing", all, damaged, err)
	}
	if text, err := os.ReadFile(aside); err != nil || string(text) != `{"text":` || filepath.Dir(aside) != d.Path {
		t.Errorf("%s holds %q, %v", aside, text, err)
	}
	if err := d.Put("bad", note{"anew"}, false); err != nil {
		t.Error(err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: t.TempDir()}
	for _, k := range []string{"a", "A-b_c.9", "x..", strings.Repeat("k", 200)} {
		if err := d.Put(k, note{}, false); err != nil {
			t.Errorf("Put(%q): %v", k, err)
		}
	}
	for _, k := range []string{"", ".", "..", ".hidden", "a/b", "../a", "a\x00", "a b", "ä", strings.Repeat("k", 201)} {
		_, getErr := d.Get(k)
		for _, err := range []error{d.Put(k, note{}, false), d.Delete(k), getErr} {
			if !fault.Is(err, fault.InvalidArgument) {
				t.Errorf("key %q: %v, want invalid_argument", k, err)
			}
		}
	}
}

func TestUnwritableDirIsStorage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	d := store.Dir[note]{Path: filepath.Join(file, "records")}
	if err := d.Put("k", note{}, true); !fault.Is(err, fault.Storage) {
		t.Errorf("Put below a file: %v, want storage_error", err)
	}
}

// TestReadersSeeWholeRecords reads records while long and short ones are
// written, and tests that every one is whole.
func TestReadersSeeWholeRecords(t *testing.T) {
	t.Parallel()
	d := store.Dir[note]{Path: t.TempDir()}
	texts := []string{"short", strings.Repeat("long", 20_000)}
	if err := d.Put("k", note{texts[0]}, false); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, text := range texts {
		writers.Go(func() {
			for range 100 {
				if err := d.Put("k", note{text}, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		got, err := d.Get("k")
		if err != nil || got.Text != texts[0] && got.Text != texts[1] {
			t.Fatalf("Get = %d bytes, %v, want one of the two records", len(got.Text), err)
		}
	}
	writers.Wait()
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
