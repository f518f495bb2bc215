package httpd_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/gorilla/websocket"

	"sandbox/httpd"
	"sandbox/spool"
)

// TestLateObserver has an observer read nothing while far more is printed than is
// kept. The command does not wait for it for ever, and it is told where it goes on.
func TestLateObserver(t *testing.T) {
	t.Parallel()
	small := spool.Open(spool.Config{Dir: filepath.Join(t.TempDir(), "spool"), Limit: 1 << 20})
	t.Cleanup(small.Close)
	s := start(t, func(c *httpd.Config) { c.Spool = small })
	box := s.create(`{}`)
	id, _ := s.ask("POST", "/v1/boxes/"+box+"/exec", `{"cmd":"read go; head -c 64000000 /dev/zero","stdin_open":true}`).want(t, 201, "").json["id"].(string)
	exec := "/v1/boxes/" + box + "/exec/" + id
	c := s.attach(exec, "?mode=observe")
	s.ask("POST", exec+":write_stdin?close=true", "go\n").want(t, 200, "")
	e, err := small.Get(box, id)
	must(t, err)
	must(t, e.Wait(t.Context()))
	var at, gaps int64
	var last struct {
		Type string `json:"type"`
		From int64  `json:"stdout_from"`
	}
	for last.Type != "exit" {
		kind, p, err := c.ReadMessage()
		must(t, err)
		if kind == websocket.BinaryMessage {
			at += int64(len(p) - 1)
			continue
		}
		must(t, json.Unmarshal(p, &last))
		if last.Type == "gap" {
			if last.From <= at {
				t.Errorf("a gap leads from byte %d to %d", at, last.From)
			}
			at, gaps = last.From, gaps+1
		}
	}
	if gaps == 0 || at != 64000000 {
		t.Errorf("%d gaps, and the output ends at byte %d", gaps, at)
	}
}
