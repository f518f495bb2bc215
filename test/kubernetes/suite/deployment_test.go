//go:build kubernetes

package suite

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"sandbox/client"
	"sandbox/core/options"
)

// deployed is the overlay of deploy/kubernetes with the namespace and the images of the
// tests.
const deployed = `
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources: [%s]
images:
  - {name: registry.example/sandbox, newName: localhost/sandbox, newTag: dev}
patches:
  - target: {kind: Deployment, name: sandbox}
    patch: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: sandbox}
      spec:
        template:
          spec:
            containers:
              - name: sandbox
                env: [{name: POD_IMAGE, value: "` + program + `"}]
`

// deploy applies deploy/kubernetes to a namespace, and waits until its servers are ready.
func deploy(t *testing.T, ns string) {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Rel(dir, filepath.Join(os.Getenv("SANDBOX_TEST_ROOT"), "deploy/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, deployed, ns, base), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "--kustomize", dir)
	kubectl(t, "rollout", "status", "deployment/sandbox", "--namespace", ns, "--timeout=60s")
}

// addresses returns the addresses of the servers by the names of their pods.
func addresses(t *testing.T, ns string) map[string]string {
	t.Helper()
	all := map[string]string{}
	out := kubectl(t, "get", "pods", "--namespace", ns, "--selector=app=sandbox", "--field-selector=status.phase=Running",
		`--output=go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{.status.podIP}}{{"\n"}}{{end}}{{end}}`)
	for line := range strings.Lines(out) {
		name, ip, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = "http://" + ip + ":9090"
	}
	return all
}

func at(t testing.TB, url, secret string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Credential: client.NewApiKeyCredential(secret)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDeployment has deploy/kubernetes run two servers: both answer to one key, each uses
// what the other has made, and others that take their places go on.
func TestDeployment(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	deploy(t, ns)
	servers := addresses(t, ns)
	if len(servers) != 2 {
		t.Fatalf("servers are %v, want two", servers)
	}
	secret := strings.TrimSpace(kubectl(t, "exec", "--namespace", ns, "deployment/sandbox", "--", "/sandbox", "keys", "create", "me", "--permission", "Boxes"))
	o := plain()
	o.Name = "shared"
	for name, url := range servers {
		c := at(t, url, secret)
		until(t, c, true)
		if _, err := c.CreateBox(t.Context(), o); err != nil && !strings.Contains(err.Error(), "shared") { // who comes second finds it
			t.Fatal(name, err)
		}
		echo(t, c)
	}
	ip := strings.TrimSpace(kubectl(t, "get", "service", "sandbox", "--namespace", ns, "--output=jsonpath={.spec.clusterIP}"))
	echo(t, at(t, "http://"+ip+":9090", secret))
	kubectl(t, "wait", "poddisruptionbudget/sandbox", "--namespace", ns, "--for=jsonpath={.status.disruptionsAllowed}=1", "--timeout=30s")

	kubectl(t, "rollout", "restart", "deployment/sandbox", "--namespace", ns)
	kubectl(t, "rollout", "status", "deployment/sandbox", "--namespace", ns, "--timeout=60s")
	after := addresses(t, ns)
	for name, url := range after {
		if servers[name] != "" {
			t.Errorf("%s was not replaced", name)
		}
		echo(t, at(t, url, secret))
	}
	if len(after) != 2 {
		t.Errorf("servers are %v, want two", after)
	}
	for _, url := range after {
		if _, err := at(t, url, secret).RemoveBox(t.Context(), "shared", true); err != nil {
			t.Error(err)
		}
		break
	}
}

// echo runs a command in the box of TestDeployment, once the server has heard of it.
func echo(t *testing.T, c *client.Client) {
	t.Helper()
	for began := time.Now(); ; {
		e, err := c.StartExec(t.Context(), "shared", options.Exec{Cmd: []string{"echo", "hello"}})
		if err == nil {
			var out strings.Builder
			if output(t, c, e.BoxID, e.ID, &out); out.String() != "hello\n" {
				t.Errorf("%q", out.String())
			}
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal(err)
		}
	}
}

// TestMonitoring holds the ServiceMonitor, whose kind the cluster of the tests has not, to
// the Service.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	type object struct {
		Kind     string
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Ports    []struct{ Name string }
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Endpoints []struct{ Port, Path string }
		}
	}
	find := func(dir, kind string) (found object) {
		out := kubectl(t, "kustomize", filepath.Join(os.Getenv("SANDBOX_TEST_ROOT"), dir))
		for text := range strings.SplitSeq(out, "\n---\n") {
			var o object
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			if o.Kind == kind {
				found = o
			}
		}
		return found
	}
	service, monitor := find("deploy/kubernetes", "Service"), find("deploy/kubernetes/monitoring", "ServiceMonitor")
	if len(service.Metadata.Labels) == 0 || !maps.Equal(service.Metadata.Labels, monitor.Spec.Selector.MatchLabels) {
		t.Errorf("the ServiceMonitor selects %v, the Service has %v", monitor.Spec.Selector.MatchLabels, service.Metadata.Labels)
	}
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name || monitor.Spec.Endpoints[0].Path != "/metrics" {
		t.Errorf("the ServiceMonitor reads %v, the Service has %v", monitor.Spec.Endpoints, service.Spec.Ports)
	}
}
