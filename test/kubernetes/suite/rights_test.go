//go:build kubernetes

package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// rule is a rule of a Role.
type rule struct {
	Groups    []string `yaml:"apiGroups"`
	Resources []string `yaml:"resources"`
	Names     []string `yaml:"resourceNames,omitempty"`
	Verbs     []string `yaml:"verbs"`
}

// rights returns the rules of a directory below deploy/kubernetes.
func rights(t *testing.T, dir string) []rule {
	t.Helper()
	f, err := os.Open(filepath.Join(os.Getenv("SANDBOX_TEST_ROOT"), "deploy/kubernetes", dir, "rights.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := yaml.NewDecoder(f); ; {
		var role struct {
			Kind  string `yaml:"kind"`
			Rules []rule `yaml:"rules"`
		}
		if err := d.Decode(&role); err != nil {
			t.Fatal("there is no Role: ", err)
		}
		if role.Kind == "Role" {
			return role.Rules
		}
	}
}

// limited returns an engine that has these rights alone.
func limited(t *testing.T, ns string, rules []rule, change ...func(*kubernetes.Config)) *kubernetes.Engine {
	t.Helper()
	name := strings.TrimPrefix(ids.Box.New(), string(ids.Box))
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]string{"name": name, "namespace": ns}, "rules": rules,
	})
	if err != nil {
		t.Fatal(err)
	}
	role := filepath.Join(t.TempDir(), "role.yaml")
	if err := os.WriteFile(role, text, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "-f", role)
	kubectl(t, "create", "serviceaccount", name, "-n", ns)
	kubectl(t, "create", "rolebinding", name, "-n", ns, "--role="+name, "--serviceaccount="+ns+":"+name)
	token := strings.TrimSpace(kubectl(t, "create", "token", name, "-n", ns))
	config := filepath.Join(t.TempDir(), "config")
	admin, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, admin, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "config", "--kubeconfig="+config, "set-credentials", "limited", "--token="+token)
	kubectl(t, "config", "--kubeconfig="+config, "set-context", "--current", "--user=limited")
	return open(t, ns, append(change, func(c *kubernetes.Config) {
		c.Kubeconfig, c.Reach, c.PublishService = config, kubernetes.ReachDirect, kubernetes.PublishNodePort
	})...)
}

// work does what needs each of the rights, and returns what was refused.
func work(ctx context.Context, e *kubernetes.Engine) error {
	req := core.CreateRequest{ID: ids.Box.New(), Options: plain()}
	req.Options.Name = strings.TrimPrefix(req.ID, string(ids.Box))
	if _, err := e.Create(ctx, req); err != nil {
		return err
	}
	taken := core.CreateRequest{ID: ids.Box.New(), Options: req.Options}
	if _, err := e.Create(ctx, taken); !fault.Is(err, fault.AlreadyExists) {
		return fmt.Errorf("a name that is taken: %w", err)
	}
	seconds := 3600
	if _, err := e.Update(ctx, req.ID, options.Update{TTLSeconds: &seconds}); err != nil {
		return err
	}
	if err := e.Remove(ctx, req.ID, true); err != nil {
		return err
	}
	if _, err := e.Create(ctx, taken); err != nil { // the name of one that is being deleted
		return err
	}
	if err := e.Remove(ctx, taken.ID, true); err != nil {
		return err
	}
	kept, diskless := core.CreateRequest{ID: ids.Box.New(), Options: plain()}, core.CreateRequest{ID: ids.Box.New(), Options: plain()}
	diskless.Options.AutoRemove = true
	for _, req := range []core.CreateRequest{kept, kept, diskless, diskless} { // and the id of one
		if _, err := e.Create(ctx, req); err != nil {
			return err
		}
		if err := e.Remove(ctx, req.ID, true); err != nil {
			return err
		}
	}
	open := core.CreateRequest{ID: ids.Box.New(), Options: plain()}
	open.Options.Ports = []options.Port{{GuestPort: 80, Protocol: options.ProtocolTCP}}
	if _, err := e.Create(ctx, open); err != nil {
		return err
	}
	if err := e.Remove(ctx, open.ID, true); err != nil {
		return err
	}
	keys := e.Shared("sandbox-keys")
	if err := keys.Follow(ctx, func(map[string][]byte) {}); err != nil {
		return err
	}
	for _, key := range []string{"one", "two"} { // the first makes the Secret
		if err := keys.Change(ctx, func(entries map[string][]byte) error { entries[key] = nil; return nil }); err != nil {
			return err
		}
	}
	return nil
}

// TestRights works with the rights of deploy/kubernetes, and with each of them missing.
func TestRights(t *testing.T) {
	t.Parallel()
	all := rights(t, ".")
	ns := namespace(t)
	if err := work(t.Context(), limited(t, ns, all, withDisks)); err != nil {
		t.Fatal("with all rights: ", err)
	}
	for i, r := range all {
		if r.Resources[0] == resize {
			continue // see TestResizeRight
		}
		for _, verb := range r.Verbs {
			t.Run(r.Resources[0]+" "+verb, func(t *testing.T) {
				t.Parallel()
				fewer := without(all, i, verb)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := work(ctx, limited(t, namespace(t), fewer, withDisks))
				if err == nil || !strings.Contains(err.Error(), verb) || !strings.Contains(err.Error(), r.Resources[0]) {
					t.Errorf("without it: %v, want a failure that names it", err)
				}
			})
		}
	}
}

// without returns the rules without a verb of one.
func without(all []rule, i int, verb string) []rule {
	fewer := slices.Clone(all)
	fewer[i].Verbs = slices.DeleteFunc(slices.Clone(fewer[i].Verbs), func(v string) bool { return v == verb })
	return slices.DeleteFunc(fewer, func(r rule) bool { return len(r.Verbs) == 0 })
}

const resize = "pods/resize"

// TestResizeRight claims a pod of another size without the right to change it.
func TestResizeRight(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	fewer := slices.DeleteFunc(rights(t, "."), func(r rule) bool { return r.Resources[0] == resize })
	e := limited(t, ns, fewer, func(c *kubernetes.Config) { c.Pool = 1 })
	made(t, e)
	spare(t, ns)
	_, err := createBox(t.Context(), e, func(o *options.Box) { o.MemoryMiB *= 2 })
	says(t, err, fault.Engine, "patch", resize)
}
