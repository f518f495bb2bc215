package daemon_test

import (
	"os"
	"testing"

	"sandbox/test/boxes"
	"sandbox/test/members"
)

// TestBytesCounted counts the bytes of execs over servers that end and that are
// killed, while an exec runs.
func TestBytesCounted(t *testing.T) {
	t.Parallel()
	p := serve(t)
	box := p.box()
	counts := func(when string, sent, received int) {
		t.Helper()
		m := p.ask("GET", box+"/metrics", nil).want(t, 200, "")
		members.Equal(t, when, members.Of{"sent": {m["bytes_sent_total"], float64(sent)}, "received": {m["bytes_received_total"], float64(received)}})
	}
	counts("nothing yet", 0, 0)
	fed := p.exec(box, map[string]any{"cmd": "cat; head -c 100000 /dev/zero; printf 123 >&2", "stdin": "whole input"})
	p.events(fed, 0).rest()
	counts("an exec that ended", 11, 100014)
	open := p.exec(box, map[string]any{"cmd": "cat", "stdin_open": true})
	conn := p.socket(open + "/attach")
	must(t, conn.WriteMessage(2, []byte("hello")))
	boxes.Await(t, "the echo", func() bool { return p.ask("GET", open, nil).want(t, 200, "")["stdout_bytes"] == 5.0 })
	counts("an exec that runs", 16, 100019)
	p.kill()
	p.start()
	counts("killed", 16, 100019)
	must(t, p.cmd.Process.Signal(os.Interrupt))
	must(t, p.cmd.Wait())
	p.start()
	counts("ended and started", 16, 100019)
	conn = p.socket(open + "/attach")
	must(t, conn.WriteMessage(2, []byte(" again")))
	must(t, conn.WriteMessage(1, []byte(`{"type":"eof"}`)))
	if s := show(t, conn); s.out[1] != "hello again" {
		t.Errorf("attached: %+v", s)
	}
	counts("all ended", 22, 100025)
}
