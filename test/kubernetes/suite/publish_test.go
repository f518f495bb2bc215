//go:build kubernetes

package suite

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/kubernetes"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// by has an engine publish ports of boxes by a kind of Service.
func by(service string) func(*kubernetes.Config) {
	return func(c *kubernetes.Config) { c.PublishService = service }
}

// with gives a box ports.
func with(ports ...options.Port) func(*options.Box) {
	return func(o *options.Box) { o.Ports = ports }
}

func tcp(host, guest int) options.Port {
	return options.Port{HostPort: host, GuestPort: guest, Protocol: options.ProtocolTCP}
}

// serves has a box serve a file with its id by HTTP, until it ends.
func serves(t *testing.T, e *kubernetes.Engine, id string, port int) {
	t.Helper()
	script := fmt.Sprintf("mkdir -p /www && echo %s >/www/id && httpd -p %d -h /www", id, port)
	if out, err := sh(t, e, id, script); err != nil || out != "" {
		t.Fatalf("httpd: %q, %v", out, err)
	}
}

// fetch returns the file that serves has a box serve. A port is led to the box some
// moments after the box was made, and nothing tells when.
func fetch(t *testing.T, at api.Port) string {
	t.Helper()
	url := "http://" + net.JoinHostPort(at.HostIP, strconv.Itoa(at.HostPort)) + "/id"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		text, err := get(ctx, url)
		if err == nil || ctx.Err() != nil {
			return text
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// TestNodePort reaches a program in a box by the port of the node that the record tells,
// and sees that nothing is left of it.
func TestNodePort(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, by(kubernetes.PublishNodePort))
	rec := made(t, e, with(tcp(0, 8080), options.Port{GuestPort: 8080, Protocol: options.ProtocolUDP}))
	serves(t, e, rec.ID, 8080)
	for _, p := range rec.Options.Ports {
		if p.HostIP == "" || p.HostPort < 30000 || p.GuestPort != 8080 {
			t.Errorf("published at %+v", p)
		}
	}
	if got := fetch(t, rec.Options.Ports[0]); got != rec.ID+"\n" {
		t.Errorf("the port of the node leads to %q, want %s", got, rec.ID)
	}
	other, err := open(t, ns, by(kubernetes.PublishNodePort)).Get(t.Context(), rec.ID)
	if err != nil || other.Options.Ports[0] != rec.Options.Ports[0] {
		t.Errorf("another server tells %+v, %v; want %+v", other.Options.Ports, err, rec.Options.Ports)
	}
	if _, err := createBox(t.Context(), e, with(tcp(rec.Options.Ports[0].HostPort, 80))); !fault.Is(err, fault.PortInUse) {
		t.Errorf("a port that is taken: %v", err)
	} else {
		t.Log(err)
	}
	leavesNothing(t, e, ns, rec.ID, true)
}

// TestPublishedAlone reaches a box from a pod that is none, which the rules of the cluster
// hold for, by the port that is published and by another one.
func TestPublishedAlone(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, by(kubernetes.PublishNodePort))
	rec := made(t, e, with(tcp(0, 8080)))
	serves(t, e, rec.ID, 8080)
	serves(t, e, rec.ID, 8081)
	kubectl(t, "run", "visitor", "--namespace", ns, "--image="+busybox, "--image-pull-policy=Never", "--", "sleep", "1000")
	kubectl(t, "wait", "--namespace", ns, "--for=condition=Ready", "pod/visitor", "--timeout=60s")
	address := strings.TrimSpace(kubectl(t, "get", "pod", pod(rec.ID), "--namespace", ns, "--output=jsonpath={.status.podIP}"))
	visit := func(port int) string {
		return kubectl(t, "exec", "--namespace", ns, "visitor", "--", "sh", "-c", fmt.Sprintf(`printf "GET /id HTTP/1.0\r\n\r\n" | nc -w 2 %s %d || echo no`, address, port))
	}
	reached := ""
	for range 60 { // the rules come to the node some moments after the box, and nothing tells when
		if reached = visit(8080); strings.Contains(reached, rec.ID) {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if !strings.Contains(reached, rec.ID) {
		t.Errorf("the published port leads to %q, want %s", reached, rec.ID)
	}
	if got := visit(8081); strings.Contains(got, rec.ID) || !strings.Contains(got, "no\n") {
		t.Errorf("a port that is not published leads to %q", got)
	}
}

// TestNodePortAgain makes a box anew under the id of one that was removed, at the same port.
func TestNodePortAgain(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, by(kubernetes.PublishNodePort))
	rec := made(t, e, with(tcp(0, 80)))
	port := rec.Options.Ports[0].HostPort
	for range 5 {
		if err := e.Remove(t.Context(), rec.ID, true); err != nil {
			t.Fatal(err)
		}
		again, err := e.Create(t.Context(), core.CreateRequest{ID: rec.ID, Options: small(with(tcp(port, 80)))})
		if err != nil {
			t.Fatal(err)
		}
		if p := again.Options.Ports[0]; p.HostPort != port || p.HostIP == "" {
			t.Errorf("published at %+v, want port %d", p, port)
		}
	}
}

// TestLoadBalancer shows the address of a load balancer once the cluster tells it.
func TestLoadBalancer(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	e := open(t, ns, by(kubernetes.PublishLoadBalancer))
	rec := made(t, e, with(tcp(8000, 80), tcp(0, 81)))
	for i, port := range []int{8000, 81} {
		if p := rec.Options.Ports[i]; p.HostIP != "" || p.HostPort != port {
			t.Errorf("published at %+v before there is a load balancer", p)
		}
	}
	told := make(chan core.Record, 100)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		_ = e.Changes(ctx, func(bool) {
			if now, err := e.Get(ctx, rec.ID); err == nil {
				told <- now
			}
		})
	}()
	service := strings.TrimSpace(kubectl(t, "get", "services", "--namespace", ns, "--output=name"))
	kubectl(t, "patch", service, "--namespace", ns, "--subresource=status", "--patch", `{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}`)
	for {
		select {
		case now := <-told:
			if now.Options.Ports[0].HostIP == "" {
				continue
			}
			for i, port := range []int{8000, 81} {
				if p := now.Options.Ports[i]; p.HostIP != "192.0.2.7" || p.HostPort != port {
					t.Errorf("published at %+v", p)
				}
			}
			return
		case <-ctx.Done():
			t.Fatal("the address is not told")
		}
	}
}

// TestPublishByServer creates a box through a server, which publishes the ports of a host
// on its loopback, and those of a cluster where the Service is.
func TestPublishByServer(t *testing.T) {
	t.Parallel()
	s := serve(t, namespace(t), newHome(t), "--publish-service", kubernetes.PublishNodePort)
	o := plain()
	o.Ports = []options.Port{tcp(0, 80)}
	box, err := s.CreateBox(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if p := box.Ports[0]; p.HostIP == "" || p.HostIP == "127.0.0.1" || p.HostPort < 30000 {
		t.Errorf("published at %+v", p)
	}
}

// TestPublishRefused shows ports that can't be published. They say why, and leave nothing.
func TestPublishRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		service string
		port    options.Port
		kind    fault.Kind
		words   []string
	}{
		"no kind of Service": {"", tcp(0, 80), fault.Unsupported, []string{"--publish-service", "/v1/boxes/ID/ports/PORT"}},
		"address of a host":  {kubernetes.PublishNodePort, options.Port{HostIP: "127.0.0.1", GuestPort: 80, Protocol: options.ProtocolTCP}, fault.Unsupported, []string{"ports[0].host_ip"}},
		"no port of a node":  {kubernetes.PublishNodePort, tcp(80, 80), fault.InvalidArgument, []string{"nodePort", "valid range"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			_, err := createBox(t.Context(), open(t, ns, by(c.service)), with(c.port))
			says(t, err, c.kind, c.words...)
			empty(t, ns)
		})
	}
}
