package httpd_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"sandbox/api"
	"sandbox/httpd"
)

// TestLines wants the output that is in no spool to be handed on: of /v1/run and of
// terminals.
func TestLines(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got strings.Builder
	ended := make(chan api.Exec, 2)
	s := start(t, func(c *httpd.Config) {
		c.Lines = func(e api.Exec) (func(bool, []byte), func()) {
			return func(stderr bool, p []byte) {
				mu.Lock()
				defer mu.Unlock()
				if stderr {
					got.WriteString("stderr: ")
				}
				got.Write(p)
			}, func() { ended <- e }
		}
	})
	s.ask("POST", "/v1/run", `{"image":"default","cmd":["/bin/sh","-c","echo one; echo two >&2"]}`).want(t, 200, "")
	if e := <-ended; e.TTY || !strings.Contains(got.String(), "one\n") || !strings.Contains(got.String(), "stderr: two\n") {
		t.Errorf("the run: %q of %+v", got.String(), e)
	}
	id := s.create(`{}`)
	d := websocket.Dialer{Subprotocols: []string{"sandbox.v1", "bearer." + s.key}}
	conn, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/boxes/"+id+"/attach?shell=/bin/sh", nil)
	must(t, err)
	must(t, conn.WriteMessage(websocket.BinaryMessage, []byte("echo $((40+2)); exit\n")))
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
	if e := <-ended; !e.TTY || e.BoxID != id || !strings.Contains(got.String(), "42") {
		t.Errorf("the terminal: %q of %+v", got.String(), e)
	}
	check(t, conn.Close())
}
