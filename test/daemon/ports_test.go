package daemon_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/daemon/address"
	"sandbox/test/boxes"
)

// clients returns a client that comes over TCP, and one over the Unix socket.
func (p *program) clients() map[string]*client.Client {
	p.t.Helper()
	at, err := address.Read(p.home)
	must(p.t, err)
	m := p.ask("POST", "/v1/keys", map[string]any{"name": "ports", "permissions": []string{api.MayUseBoxes}}).want(p.t, 201, "")
	all := map[string]*client.Client{}
	for kind, o := range map[string]client.Options{
		"tcp":  {URL: at.URL, Credential: client.NewApiKeyCredential(fmt.Sprint(m["key"]))},
		"unix": {URL: "unix://" + filepath.Join(p.home, "sandbox.sock")},
	} {
		all[kind], err = client.New(o)
		must(p.t, err)
		p.t.Cleanup(all[kind].Close)
	}
	return all
}

// TestPublishedAddress makes boxes with ports on addresses of the host, and wants
// a program in the box to answer there, or the address to be refused.
func TestPublishedAddress(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		publish []string
		tests   [][3]string // the connection's kind, host_ip, and the address that answers or "" for none
	}{
		{nil, [][3]string{
			{"tcp", "", "127.0.0.1"}, {"tcp", "127.0.0.2", "127.0.0.2"}, {"tcp", "0.0.0.0", ""},
			{"unix", "", "127.0.0.1"}, {"unix", "0.0.0.0", "127.0.0.1"},
		}},
		{[]string{"127.0.0.3", "0.0.0.0"}, [][3]string{{"tcp", "", "127.0.0.3"}, {"tcp", "0.0.0.0", "127.0.0.1"}}},
	} {
		flags := []string{"--listen", "127.0.0.1:0", "--host-root", os.TempDir()}
		for _, address := range server.publish {
			flags = append(flags, "--publish", address)
		}
		p := serve(t, flags...)
		by := p.clients()
		for _, tt := range server.tests {
			o := options.Box{RootfsPath: p.rootfs, CPUs: 1, MemoryMiB: 64, Network: options.NetworkIsolated}
			o.Ports = []options.Port{{HostIP: tt[1], GuestPort: 80, Protocol: options.ProtocolTCP}}
			box, err := by[tt[0]].CreateBox(t.Context(), o)
			if tt[2] == "" {
				if !fault.Is(err, fault.PermissionDenied) || !strings.Contains(err.Error(), "--publish "+tt[1]) {
					t.Errorf("%v with --publish %v: %v", tt, server.publish, err)
				}
				continue
			}
			must(t, err)
			_, err = by[tt[0]].StartExec(t.Context(), box.ID, options.Exec{Cmd: []string{"nc", "-ll", "-p", "80", "-e", "echo", box.ID}})
			must(t, err)
			address := net.JoinHostPort(tt[2], fmt.Sprint(box.Ports[0].HostPort))
			boxes.Await(t, "an answer at "+address, func() bool { return said(address) == box.ID+"\n" })
		}
	}
}

// said returns the first line that the listener at an address sends, or "".
func said(address string) string {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	line, _ := bufio.NewReader(conn).ReadString('\n') // what is not said is not what is wanted
	return line
}
