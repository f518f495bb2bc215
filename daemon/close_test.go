package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/logs/boxlog"
	"sandbox/logs/clickhouse"
	"sandbox/logs/ingest"
	"sandbox/profile"
)

// heldUpload begins a request of E2B's protocol and returns when its handler reads the
// body. The function that is returned sends the body and waits for the answer.
func heldUpload(t *testing.T, d *run) (finish func()) {
	t.Helper()
	p, _ := storedProfile(t, profile.Default)
	conn, err := net.Dial("tcp", d.e2b.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	want := func(part string) {
		t.Helper()
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, part) {
			t.Errorf("got %q, %v; want %s", line, err, part)
		}
	}
	_, _ = fmt.Fprintf(conn, "POST /sandboxes HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", p.APIKey)
	want("100 Continue")
	want("\r\n")
	return func() {
		t.Helper()
		_, _ = io.WriteString(conn, "[]")
		want("400 Bad Request")
	}
}

// TestCloseTogether ends a daemon while a request of E2B's protocol is in flight. It
// wants the streams of the other clients to be told so meanwhile.
func TestCloseTogether(t *testing.T) {
	forget(t)
	d := launch(t, t.TempDir(), newRuntime(t)(), func(c *Config) { c.E2B = "127.0.0.1:0" })
	o := options.Defaults()
	o.Image, o.AutoRemove, o.CPUs = "default", false, 1
	box, _, err := d.runtime.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	command, err := box.Exec(t.Context(), options.Exec{Cmd: []string{"cat"}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.spool.Start(command, true)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := fresh(t, d.Socket).Get("http://socket/v1/boxes/" + box.ID() + "/exec/" + e.Record().ID + "/events") //nolint:noctx // the test ends with it
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	finish := heldUpload(t, d)
	ended := make(chan error, 1)
	go func() { ended <- d.end() }()
	if events, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(events), "the service ends") {
		t.Errorf("the stream has ended with %q, %v", events, err)
	}
	finish()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLastRows closes the log service when requests in flight have taken all the time
// that there was. It wants rows to be stored for some time all the same.
func TestLastRows(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 1), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
	}))
	defer silent.Close()
	defer close(release)
	engine, err := clickhouse.Open(silent.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := logEngine{inserter: engine, writer: ingest.NewWriter(engine)}
	e.boxes = boxlog.New(boxlog.Config{Writer: e.writer, Log: slog.New(slog.DiscardHandler)})
	e.boxes.Boxes(nil)
	e.boxes.Boxes([]core.Record{{ID: ids.Box.New()}})
	<-asked
	over, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	if err := e.Close(over); err != nil {
		t.Error(err)
	}
	if waited := time.Since(begin); waited < lastRows {
		t.Errorf("rows were given up after %v, want %v", waited, lastRows)
	}
}
