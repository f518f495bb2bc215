package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/fault"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestProfiles(t *testing.T) {
	t.Parallel()
	p := Profiles{filepath.Join(t.TempDir(), ".sandbox", "credentials.toml")}
	if _, ok, err := p.Get(DefaultProfile); ok || err != nil {
		t.Errorf("%v, %v without a file", ok, err)
	}
	want := Profile{URL: "https://host/api", APIKey: "sbx_live_x", PathPrefix: "p"}
	for _, name := range []string{DefaultProfile, "http://127.0.0.1:9090", "a \"quoted\" 鍵"} {
		if err := p.Put(name, want); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := p.Get(name); got != want || !ok || err != nil {
			t.Errorf("%q: %+v, %v, %v", name, got, ok, err)
		}
	}
	info, err := os.Stat(p.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info.Mode(), err)
	}
	if ok, err := p.Delete(DefaultProfile); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := p.Delete(DefaultProfile); ok || err != nil {
		t.Error(ok, err)
	}
	if names, err := p.Names(); len(names) != 2 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if left, err := os.ReadDir(filepath.Dir(p.Path)); len(left) != 1 || err != nil {
		t.Errorf("%v, %v beside the file", left, err)
	}
}

// TestDamagedProfiles wants a failure that names the file and quotes no key,
// and the file as it was.
func TestDamagedProfiles(t *testing.T) {
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
			p := Profiles{filepath.Join(t.TempDir(), "credentials.toml")}
			if err := os.WriteFile(p.Path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := p.Put("new", Profile{})
			if !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), p.Path) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v", err)
			}
			if got, err := os.ReadFile(p.Path); string(got) != text || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
