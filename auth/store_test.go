package auth

import (
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/test/leak"
	"sandbox/test/members"
)

func TestMain(m *testing.M) { leak.Main(m) }

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, nil)
	return opened(t, s, err)
}

// opened returns a Store that is closed when the test ends.
func opened(t *testing.T, s *Store, err error) *Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func create(t *testing.T, s *Store, permissions ...string) (Key, string) {
	t.Helper()
	k, secret, err := s.Create(t.Context(), Local("default"), Request{Name: "k", Permissions: permissions, Environment: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func refused(t *testing.T, s *Store, secret string) {
	t.Helper()
	if _, err := s.Verify(secret); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("%q: got %v, want unauthenticated", secret, err)
	}
}

// TestFormat computes the check sum another way.
func TestFormat(t *testing.T) {
	t.Parallel()
	for range 200 {
		secret := newSecret()
		m := regexp.MustCompile(`^sbx_live_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$`).FindStringSubmatch(secret)
		if m == nil {
			t.Fatalf("%q", secret)
		}
		// big.Int writes base62 as 0-9a-zA-Z: the cases are the other way round.
		sum := big.NewInt(int64(crc32.ChecksumIEEE([]byte(m[1])))).Text(62)
		sum = strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z':
				return r - 'a' + 'A'
			case r >= 'A' && r <= 'Z':
				return r - 'A' + 'a'
			}
			return r
		}, sum)
		if want := strings.Repeat("0", 6-len(sum)) + sum; m[2] != want {
			t.Errorf("%q: check sum %q, want %q", secret, m[2], want)
		}
		if !wellFormed(secret) {
			t.Errorf("%q is not well-formed", secret)
		}
	}
	if got := mask("sbx_live_abcdefXYZ"); got != "sbx_live_************XYZ" {
		t.Errorf("mask %q", got)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	k, secret := create(t, s, api.MayUseBoxes)
	p, err := s.Verify(secret)
	members.Equal(t, "who has the key", members.Of{
		"failure": {err, nil}, "sub": {p.Sub, k.ID}, "type": {p.Type, api.ServiceAccount},
		"may use boxes": {p.May(api.MayUseBoxes), true}, "may ask who it is": {p.May(""), true}, "may manage keys": {p.May(api.MayUseKeys), false},
	})
	for i := range secret { // every single mistyped character
		other := byte('x')
		if secret[i] == 'x' {
			other = 'y'
		}
		refused(t, s, secret[:i]+string(other)+secret[i+1:])
	}
	for _, bad := range []string{"", "sbx_live_", secret + "a", secret[1:], secret[:len(secret)-1], " " + secret, strings.ToUpper(secret), newSecret(), strings.Repeat("a", 1<<20)} {
		refused(t, s, bad)
	}
}

func TestNothingSecretIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k, secret := create(t, open(t, dir), api.MayUseBoxes)
	text, err := os.ReadFile(filepath.Join(dir, k.ID+".json"))
	if err != nil || strings.Contains(string(text), secret[len(secretPrefix):len(secret)-4]) {
		t.Errorf("%s, %v", text, err)
	}
	if !strings.HasSuffix(k.Mask, "*"+secret[len(secret)-3:]) || strings.Contains(k.Mask, secret[9:20]) {
		t.Errorf("mask %q", k.Mask)
	}
}

func TestDeleteAndExpiry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	k, secret := create(t, s, api.MayUseBoxes)
	soon := time.Now().Add(time.Minute)
	_, expiring, err := s.Create(t.Context(), Local("default"), Request{Name: "e", Permissions: []string{api.MayUseBoxes}, Environment: "default", ExpiresAt: &soon})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(expiring); err != nil {
		t.Error(err)
	}
	for _, e := range s.byID { // the time comes
		if e.key.ExpiresAt != nil {
			past := time.Now()
			e.key.ExpiresAt = &past
		}
	}
	refused(t, s, expiring)
	if err := s.Delete(t.Context(), k.ID); err != nil {
		t.Error(err)
	}
	refused(t, s, secret)
	if err := s.Delete(t.Context(), k.ID); !fault.Is(err, fault.KeyNotFound) {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", "..", "../../etc/passwd", "key_" + strings.Repeat("a", 10_000)} {
		if err := s.Delete(t.Context(), bad); !fault.Is(err, fault.KeyNotFound) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	refused(t, open(t, dir), secret) // nor does a restart bring it back
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Second)
	s := open(t, t.TempDir())
	weak := &Principal{Sub: "key_1", Type: api.ServiceAccount, Permissions: []string{api.MayUseKeys, api.MayUseBoxes, api.MayQueryLogs}, Environment: "default"}
	for name, tt := range map[string]struct {
		by   *Principal
		req  Request
		kind fault.Kind
	}{
		"no name":           {nil, Request{Name: " ", Permissions: []string{api.MayUseBoxes}, Environment: "a"}, fault.InvalidArgument},
		"a long name":       {nil, Request{Name: strings.Repeat("a", 129), Permissions: []string{api.MayUseBoxes}, Environment: "a"}, fault.InvalidArgument},
		"control":           {nil, Request{Name: "a\x1b[2J", Permissions: []string{api.MayUseBoxes}, Environment: "a"}, fault.InvalidArgument},
		"NUL":               {nil, Request{Name: "a\x00", Permissions: []string{api.MayUseBoxes}, Environment: "a"}, fault.InvalidArgument},
		"no permission":     {nil, Request{Name: "a", Environment: "a"}, fault.InvalidArgument},
		"unknown":           {nil, Request{Name: "a", Permissions: []string{"boxes"}, Environment: "a"}, fault.InvalidArgument},
		"environment":       {nil, Request{Name: "a", Permissions: []string{api.MayUseBoxes}, Environment: "a b"}, fault.InvalidArgument},
		"past":              {nil, Request{Name: "a", Permissions: []string{api.MayUseBoxes}, Environment: "a", ExpiresAt: &past}, fault.InvalidArgument},
		"what it has not":   {weak, Request{Name: "a", Permissions: []string{api.MayUseBoxes, api.MayWriteLogs}, Environment: "default"}, fault.PermissionDenied},
		"other environment": {weak, Request{Name: "a", Permissions: []string{api.MayQueryLogs}, Environment: "other"}, fault.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			by := tt.by
			if by == nil {
				by = Local("default")
			}
			if _, _, err := s.Create(t.Context(), by, tt.req); !fault.Is(err, tt.kind) {
				t.Errorf("got %v, want %v", err, tt.kind)
			}
			if len(s.List()) != 0 {
				t.Error("a key was made")
			}
		})
	}
	k, _, err := s.Create(t.Context(), weak, Request{Name: "Schlüssel 鍵", Permissions: []string{api.MayQueryLogs, api.MayUseBoxes, api.MayUseBoxes}, Environment: "default"})
	if err != nil || fmt.Sprint(k.Permissions) != "[Boxes observability.logs.query]" {
		t.Errorf("%+v, %v", k, err)
	}
}

// TestLastUsed wants the time at once in the list, and on disk by the close.
func TestLastUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	_, secret := create(t, s, api.MayUseBoxes)
	if s.List()[0].LastUsedAt != nil {
		t.Error("a new key was used")
	}
	if _, err := s.Verify(secret); err != nil {
		t.Fatal(err)
	}
	last := s.List()[0].LastUsedAt
	if last == nil || time.Since(*last) > time.Minute {
		t.Errorf("last used %v", last)
	}
	if on, err := Open(dir, nil); err != nil || on.List()[0].LastUsedAt != nil {
		t.Errorf("a write for a request: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if got := again.List()[0].LastUsedAt; got == nil || !got.Equal(*last) {
		t.Errorf("got %v, want %v", got, last)
	}
	if _, err := again.Verify(secret); err != nil {
		t.Error(err)
	}
}

// TestWriteUsed is what the timer runs: a key that is deleted meanwhile stays so.
func TestWriteUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	kept, one := create(t, s, api.MayUseBoxes)
	gone, two := create(t, s, api.MayUseBoxes)
	for _, secret := range []string{one, two} {
		if _, err := s.Verify(secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	s.writeUsed()
	keys, _, err := s.keeper.(files).records.List()
	if err != nil || len(keys) != 1 || keys[0].ID != kept.ID || keys[0].LastUsedAt == nil {
		t.Errorf("%+v, %v", keys, err)
	}
}

func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key_1.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	s, err := Open(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(log.String(), "key_1.damaged") {
		t.Errorf("the log says %q", log.String())
	}
	k, secret := create(t, s, api.MayUseBoxes)
	if got, err := s.Verify(secret); err != nil || got.Sub != k.ID {
		t.Errorf("another key: %+v, %v", got, err)
	}
}

// TestHammer is for the race detector.
func TestHammer(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, secret := create(t, s, api.MayUseBoxes)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				k, other, err := s.Create(t.Context(), Local("default"), Request{Name: "k", Permissions: []string{api.MayUseBoxes}, Environment: "default"})
				_, mineErr := s.Verify(other)
				_, firstErr := s.Verify(secret)
				s.writeUsed()
				if deleteErr := s.Delete(t.Context(), k.ID); err != nil || mineErr != nil || firstErr != nil || deleteErr != nil {
					t.Error(err, mineErr, firstErr, deleteErr)
				}
				s.List()
			}
		})
	}
	wg.Wait()
	if n := len(s.List()); n != 1 {
		t.Errorf("%d keys are left", n)
	}
}

func FuzzVerify(f *testing.F) {
	s, err := Open(f.TempDir(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("")
	f.Add(newSecret())
	f.Add("sbx_live_" + strings.Repeat("0", 49))
	f.Fuzz(func(t *testing.T, secret string) { refused(t, s, secret) })
}

func BenchmarkVerify(b *testing.B) {
	s, err := Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	_, secret, err := s.Create(b.Context(), Local("default"), Request{Name: "k", Permissions: []string{api.MayUseBoxes}, Environment: "default"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Verify(secret); err != nil {
			b.Fatal(err)
		}
	}
}
