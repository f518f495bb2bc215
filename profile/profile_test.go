package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestFile(t *testing.T) {
	t.Parallel()
	f := File{filepath.Join(t.TempDir(), ".sandbox", "credentials.toml")}
	if _, ok, err := f.Get(Default); ok || err != nil {
		t.Errorf("%v, %v without a file", ok, err)
	}
	want := Profile{URL: "https://host/api", APIKey: "sbx_live_x", PathPrefix: "p"}
	for _, name := range []string{Default, "http://127.0.0.1:9090", "a \"quoted\" 鍵"} {
		if err := f.Put(name, want); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := f.Get(name); got != want || !ok || err != nil {
			t.Errorf("%q: %+v, %v, %v", name, got, ok, err)
		}
	}
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info.Mode(), err)
	}
	if ok, err := f.Delete(Default); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := f.Delete(Default); ok || err != nil {
		t.Error(ok, err)
	}
	if names, err := f.Names(); len(names) != 2 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if left, err := os.ReadDir(filepath.Dir(f.Path)); len(left) != 1 || err != nil {
		t.Errorf("%v, %v beside the file", left, err)
	}
}

// TestByHand: a file that a person wrote has the headers of profiles alone.
func TestByHand(t *testing.T) {
	t.Parallel()
	f := File{filepath.Join(t.TempDir(), "credentials.toml")}
	if err := os.WriteFile(f.Path, []byte("[profiles.work]\nurl = \"http://host\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, ok, err := f.Get("work"); p.URL != "http://host" || !ok || err != nil {
		t.Errorf("%+v, %v, %v", p, ok, err)
	}
}

// TestDamagedFile wants a failure that names the file and quotes no key,
// and the file as it was.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no TOML":    "[profiles.default]\napi_key = \"sbx_live_hidden\n",
		"wrong type": "[profiles.default]\napi_key = [\"sbx_live_hidden\"]\n",
		"no table":   "profiles = \"sbx_live_hidden\"\n",
		"unknown":    "[profiles.default]\nsecret = \"sbx_live_hidden\"\n",
		"bytes":      "\x00\xff sbx_live_hidden",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := File{filepath.Join(t.TempDir(), "credentials.toml")}
			if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := f.Put("new", Profile{})
			if !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), f.Path) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v", err)
			}
			if got, err := os.ReadFile(f.Path); string(got) != text || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
