package share_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/httpd/share"
)

var (
	now   = time.Unix(1_800_000_000, 0)
	grant = share.Grant{Box: "box_abcdefghijklmnopqrst", Port: 8080, Until: now.Add(time.Hour)}
)

func open(t testing.TB, dir string) *share.Signer {
	t.Helper()
	s, err := share.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	token := s.Sign(grant)
	if !strings.HasPrefix(token, "8080-abcdefghijklmnopqrst-1800003600-") {
		t.Errorf("the token is %q", token)
	}
	if got, err := open(t, dir).Check(token, now); err != nil || got != grant {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
	denied := func(what, token string, s *share.Signer, at time.Time, says string) {
		t.Helper()
		if g, err := s.Check(token, at); !fault.Is(err, fault.PermissionDenied) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", what, g, err)
		}
	}
	denied("at its end", token, s, grant.Until, "has ended")
	denied("of another server", token, open(t, t.TempDir()), now, "not valid")
	for i := range len(token) {
		for _, c := range []byte{'0', 'a', 'A', '-', '_', '=', token[i] ^ 1} {
			if c != token[i] {
				denied("changed", token[:i]+string(c)+token[i+1:], s, now, "not valid")
			}
		}
		denied("cut off", token[:i], s, now, "not valid")
	}
	denied("longer", token+"A", s, now, "not valid")
	if st, err := os.Stat(filepath.Join(dir, "share.json")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v, %v", st, err)
	}
}

// TestDamagedSecret ends all links and makes a new secret.
func TestDamagedSecret(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"{", `{"secret":"AAAA"}`} {
		dir := t.TempDir()
		token := open(t, dir).Sign(grant)
		if err := os.WriteFile(filepath.Join(dir, "share.json"), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		if _, err := s.Check(token, now); err == nil {
			t.Errorf("%s: the link goes on", damage)
		}
		if _, err := open(t, dir).Check(s.Sign(grant), now); err != nil {
			t.Errorf("%s: %v", damage, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	s := open(f, f.TempDir())
	good := s.Sign(grant)
	f.Add(good)
	f.Add("8080-abcdefghijklmnopqrst-1800003600-")
	f.Add("---")
	f.Fuzz(func(t *testing.T, token string) {
		if g, err := s.Check(token, now); err == nil && token != good {
			t.Errorf("%q allows %+v", token, g)
		}
	})
}
