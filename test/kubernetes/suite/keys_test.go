//go:build kubernetes

package suite

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/daemon/address"
)

// holder returns a client of a server that shows a key.
func holder(t testing.TB, s *server, secret string) *client.Client {
	t.Helper()
	own, err := address.Read(s.home)
	if err != nil {
		t.Fatal(err)
	}
	return at(t, own.URL, secret)
}

// until waits until a server takes a key, or refuses it, and returns how long that took.
func until(t *testing.T, c *client.Client, taken bool) time.Duration {
	t.Helper()
	for began := time.Now(); ; {
		_, err := c.Boxes(t.Context(), client.Filter{})
		if (err == nil) == taken {
			return time.Since(began)
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("a key is taken: %v, want %v: %v", err == nil, taken, err)
		}
	}
}

// TestKeys has servers with homes of their own share the keys of the API.
func TestKeys(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	tcp := []string{"--listen", "127.0.0.1:0"}
	a, b := serve(t, ns, newHome(t), tcp...), serve(t, ns, newHome(t), tcp...)
	if keys, err := a.Keys(t.Context()); err != nil || len(keys) != 0 {
		t.Errorf("a first start made keys: %+v, %v", keys, err)
	}
	made := map[string]api.Key{}
	for name, s := range map[string]*server{"a": a, "b": b} { // neither takes the other's away
		k, err := s.CreateKey(t.Context(), client.NewKey{Name: name, Permissions: []string{api.MayUseBoxes}})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = k
	}
	for name, k := range made {
		for _, s := range []*server{a, b} {
			t.Logf("the key of %s is taken after %v", name, until(t, holder(t, s, k.Secret), true))
		}
	}
	var kept struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(kubectl(t, "get", "secret", "sandbox-keys", "--namespace", ns, "--output=json")), &kept); err != nil {
		t.Fatal(err)
	}
	for id, text := range kept.Data {
		record, err := base64.StdEncoding.DecodeString(text)
		if err != nil || strings.Contains(string(record), made["a"].Secret) || strings.Contains(string(record), made["b"].Secret) {
			t.Errorf("the Secret has the secret of key %s, or %v", id, err)
		}
	}
	if err := b.DeleteKey(t.Context(), made["a"].ID); err != nil {
		t.Fatal(err)
	}
	t.Logf("a deleted key is refused after %v", until(t, holder(t, a, made["a"].Secret), false))

	a.kill()
	b.kill()
	c := serve(t, ns, newHome(t), tcp...)
	if _, err := holder(t, c, made["b"].Secret).Boxes(t.Context(), client.Filter{}); err != nil {
		t.Errorf("a server that starts: %v", err)
	}
	if _, err := holder(t, c, made["a"].Secret).Boxes(t.Context(), client.Filter{}); err == nil {
		t.Error("a server that starts takes a deleted key")
	}

	// A Secret that was deleted by hand has no keys, and comes back with the next.
	kubectl(t, "delete", "secret", "sandbox-keys", "--namespace", ns)
	until(t, holder(t, c, made["b"].Secret), false)
	again, err := c.CreateKey(t.Context(), client.NewKey{Name: "again", Permissions: []string{api.MayUseBoxes}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, holder(t, c, again.Secret), true)
}
