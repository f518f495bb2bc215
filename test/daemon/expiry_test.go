package daemon_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/test/boxes"
)

// TestLifeTimes makes boxes that live for some seconds, and kills their shim and the
// server again and again meanwhile: each ends as it is to, at its time. Here 20 boxes
// must, and not soon after their time: the machine may be busy with other tests.
// `make lifetimes` has 200, each within 2 s.
func TestLifeTimes(t *testing.T) {
	t.Parallel()
	n, longest, bound := 20, 6, time.Minute
	if all := os.Getenv("SANDBOX_TEST_LIFETIMES"); all != "" {
		n, longest, bound = 200, 20, 2*time.Second
	}
	p := serve(t)
	lives := map[string]*life{}
	var late []time.Duration
	for i := range n {
		l := p.live(1+i%longest, []string{"stop", "pause", "remove"}[i%3])
		lives[l.id] = l
		late = append(late, p.ended(t, lives)...) // when one was removed is known from a look alone
	}
	for round := 0; len(late) < n; round++ {
		if round%50 == 49 {
			p.kill()
		}
		if round%20 == 19 {
			p.killShim(t)
		}
		if round%50 == 49 {
			p.start()
		}
		time.Sleep(100 * time.Millisecond) // how often is killed
		late = append(late, p.ended(t, lives)...)
	}
	slices.Sort(late)
	t.Logf("%d boxes ended after their times: p50 %v, p99 %v, at most %v", n, late[n/2], late[n*99/100], late[n-1])
	if late[0] < 0 || late[n-1] > bound {
		t.Errorf("the earliest ended %v after its time and the latest %v, of at most %v", late[0], late[n-1], bound)
	}
}

// life is a box that lives for a time.
type life struct {
	id, end string
	at      time.Time
}

// live makes a box that lives for a number of seconds.
func (p *program) live(seconds int, end string) *life {
	p.t.Helper()
	box := p.ask("POST", "/v1/boxes", map[string]any{
		"rootfs_path": p.rootfs, "network": "None", "cpus": 1, "memory_mib": 16, "ttl_seconds": seconds, "on_expiry": end,
	}).want(p.t, 201, "")
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(box["expires_at"]))
	must(p.t, err)
	return &life{fmt.Sprint(box["id"]), end, at}
}

// ended returns how long after their times boxes have ended since the last call, and
// takes them out of lives. A time is that of the record; of a box that was removed it
// is now.
func (p *program) ended(t *testing.T, lives map[string]*life) (late []time.Duration) {
	t.Helper()
	boxes := map[string]map[string]any{}
	list, _ := p.ask("GET", "/v1/boxes?page_size=1000", nil).want(t, 200, "")["boxes"].([]any)
	for _, one := range list {
		box, _ := one.(map[string]any)
		boxes[fmt.Sprint(box["id"])] = box
	}
	for id, l := range lives {
		box, at := boxes[id], time.Now()
		switch {
		case box == nil && l.end != "remove":
			t.Fatalf("%s is gone, and was to %s", id, l.end)
		case box != nil && box["status"] == "running", box != nil && box["expires_at"] != nil:
			continue
		case box != nil:
			member := map[string]string{"stopped": "stopped_at", "paused": "paused_at"}[fmt.Sprint(box["status"])]
			if state, _ := box["state"].(map[string]any); state["reason"] != "expired" || member == "" || (member == "paused_at") != (l.end == "pause") {
				t.Fatalf("the box was to %s: %v", l.end, box)
			}
			var err error
			at, err = time.Parse(time.RFC3339Nano, fmt.Sprint(box[member]))
			must(t, err)
		}
		late = append(late, at.Sub(l.at))
		delete(lives, id)
	}
	return late
}

// killShim kills the shim of the home, if there is one.
func (p *program) killShim(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(p.home, "engine", wire.ShimSocket))
	if err != nil {
		return // the next one has not come yet
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	must(t, err)
	var cred *unix.Ucred
	must(t, raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }))
	must(t, err)
	if err := syscall.Kill(int(cred.Pid), syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Error("kill shim "+strconv.Itoa(int(cred.Pid))+": ", err)
	}
}

// TestExpiriesCounted wants the boxes whose time has come among the figures of the
// server, and these to go on when the shim and the server are killed.
func TestExpiriesCounted(t *testing.T) {
	t.Parallel()
	p := serve(t)
	counts := func(want map[string]int) {
		t.Helper()
		boxes.Await(t, "the counts of boxes whose time has come", func() bool {
			page := string(p.ask("GET", "/metrics", nil).body)
			for labels, n := range want {
				if !strings.Contains(page, fmt.Sprintf("sandbox_boxes_expired_total{%s} %d\n", labels, n)) {
					return false
				}
			}
			return true
		})
	}
	counts(map[string]int{`action="stop",reason="expired"`: 0, `action="remove",reason="idle"`: 0})
	for range 2 {
		for _, end := range []string{"stop", "pause", "remove"} {
			p.live(1, end)
		}
	}
	p.ask("POST", "/v1/boxes", map[string]any{"rootfs_path": p.rootfs, "network": "None", "idle_seconds": 1, "on_expiry": "pause"}).want(t, 201, "")
	all := map[string]int{
		`action="stop",reason="expired"`: 2, `action="pause",reason="expired"`: 2, `action="remove",reason="expired"`: 2,
		`action="stop",reason="idle"`: 0, `action="pause",reason="idle"`: 1, `action="remove",reason="idle"`: 0,
	}
	counts(all)
	p.killShim(t)
	p.kill()
	p.start()
	counts(all)
	p.live(1, "stop")
	all[`action="stop",reason="expired"`] = 3
	counts(all)
}
