package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// listening is what listens in the neighbour: it prints its address, and a line for each
// who reaches it.
const listening = `import socket, sys, threading
port = int(sys.argv[1])
tcp, udp = socket.create_server(("0.0.0.0", port)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", port))
way = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
way.connect(("198.51.100.1", 9))
print(way.getsockname()[0], file=open("/tmp/address", "w"), flush=True)
def hear():
    while True:
        udp.sendto(b"seen", udp.recvfrom(64)[1]); print("udp", file=open("/tmp/seen", "a"), flush=True)
threading.Thread(target=hear).start()
while True:
    tcp.accept(); print("tcp", file=open("/tmp/seen", "a"), flush=True)
`

// ears listen on the host, by TCP and UDP, for what must not come.
type ears struct {
	tcp  net.Listener
	udp  net.PacketConn
	port int
	seen atomic.Int64
}

// listen opens the ears. The caller closes them.
func listen() (*ears, error) {
	tcp, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, err
	}
	e := &ears{tcp: tcp}
	e.port = tcp.Addr().(*net.TCPAddr).Port
	if e.udp, err = net.ListenPacket("udp", ":"+strconv.Itoa(e.port)); err != nil {
		_ = tcp.Close()
		return nil, err
	}
	go func() { // ends when they are closed
		for {
			conn, err := e.tcp.Accept()
			if err != nil {
				return
			}
			e.seen.Add(1)
			_ = conn.Close()
		}
	}()
	go func() {
		for b := make([]byte, 64); ; {
			_, from, err := e.udp.ReadFrom(b)
			if err != nil {
				return
			}
			e.seen.Add(1)
			_, _ = e.udp.WriteTo([]byte("seen"), from)
		}
	}()
	return e, nil
}

func (e *ears) close() { _, _ = e.tcp.Close(), e.udp.Close() }

// neighbour makes a box that is to be reached, and opens the host's ears. It returns the
// arguments of exec that tell of them, and what was reached when it is called. The caller
// calls it once.
func (b *bench) neighbour(ctx context.Context) (args []string, reached func() []string, err error) {
	e, err := listen()
	if err != nil {
		return nil, nil, err
	}
	id, err := b.sandbox(ctx, "create", "default")
	if err != nil {
		e.close()
		return nil, nil, err
	}
	id = strings.TrimSpace(id)
	reached = func() (saw []string) {
		e.close()
		out, err := b.sandbox(context.WithoutCancel(ctx), "exec", id, "--", "sh", "-c", "cat /tmp/seen 2>/dev/null; cat /tmp/address")
		if n := strings.Count(out, "\n") - 1; n > 0 || err != nil {
			saw = append(saw, fmt.Sprintf("a neighbour was reached %d times, %v", n, err))
		}
		if n := e.seen.Load(); n > 0 {
			saw = append(saw, fmt.Sprintf("the host was reached %d times", n))
		}
		_, _ = b.sandbox(context.WithoutCancel(ctx), "rm", "-f", id)
		return saw
	}
	_, err = b.sandbox(ctx, "exec", "-d", id, "--", "python3", "-c", listening, strconv.Itoa(e.port))
	address := ""
	if err == nil {
		address, err = b.sandbox(ctx, "exec", id, "--", "sh", "-c", "until [ -s /tmp/address ]; do sleep 0.05; done; cat /tmp/address")
	}
	if err != nil {
		_ = reached()
		return nil, nil, err
	}
	return []string{
		"-e", fmt.Sprintf("BOARD_PORT=%d", e.port), "-e", "BOARD_HOSTS=" + strings.Join(addresses(true), ","),
		"-e", "BOARD_NEIGHBOUR=" + strings.TrimSpace(address),
	}, reached, nil
}

// addresses returns the host's own addresses, but those of its loopback: also those of the
// links of boxes, which may go at any time, or not.
func addresses(ofBoxes bool) (all []string) {
	links, _ := net.Interfaces() // none are as good as those that can't be read
	for _, link := range links {
		found, _ := link.Addrs()
		for _, a := range found {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() && (ofBoxes || !strings.HasPrefix(link.Name, "sbx")) {
				all = append(all, ip.IP.String())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // each box has one of the same address
}
