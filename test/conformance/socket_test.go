package conformance_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// socketAt opens a WebSocket, says what say lists (an object is a text frame,
// a string a binary one) and reads to the end. It returns the messages of the
// server, its output as it came (an attachment's without the first byte of
// each frame, by stream), the code of its close, and the subprotocol.
func (c client) socketAt(r *running, path string, a object) result {
	r.Helper()
	d := websocket.Dialer{Subprotocols: []string{"sandbox.v1"}}
	header := http.Header{}
	base := strings.Replace(c.url, "http", "ws", 1)
	switch {
	case c.key == "":
		d.NetDialContext = c.dial
	case a["browser"] == true:
		d.Subprotocols = append(d.Subprotocols, "bearer."+c.key)
	default:
		header.Set("Authorization", "Bearer "+c.key)
	}
	conn, resp, err := d.DialContext(r.ctx, base+path+query(without(a, "box", "exec", "say", "browser")), header)
	if errors.Is(err, websocket.ErrBadHandshake) {
		b := make([]byte, 4096)
		n, _ := resp.Body.Read(b)
		return reply{resp.StatusCode, resp.Header, b[:n]}.result(r)
	}
	must(r, err)
	defer conn.Close()
	must(r, conn.SetReadDeadline(time.Now().Add(time.Minute))) // or one that says nothing would end all cases
	s := spoken{text: map[string]string{}}
	s.one(r, conn) // it is ready
	say, _ := a["say"].([]any)
	for _, frame := range say {
		if text, ok := frame.(string); ok {
			must(r, conn.WriteMessage(websocket.BinaryMessage, []byte(text)))
			continue
		}
		doc, err := json.Marshal(frame)
		must(r, err)
		must(r, conn.WriteMessage(websocket.TextMessage, doc))
	}
	for s.one(r, conn) {
	}
	return result{value: toObject(object{
		"messages": s.messages, "raw": s.raw, "stdout": s.text["\x01"], "stderr": s.text["\x02"],
		"close": s.close, "protocol": conn.Subprotocol(),
	})}
}

// spoken is what a server has said.
type spoken struct {
	messages []object
	raw      string
	text     map[string]string // by the first byte of frames
	close    int
}

// one reads a frame; false at the end.
func (s *spoken) one(r *running, conn *websocket.Conn) bool {
	r.Helper()
	kind, b, err := conn.ReadMessage()
	if end := (*websocket.CloseError)(nil); errors.As(err, &end) {
		s.close = end.Code
	}
	if err != nil {
		return false
	}
	if kind == websocket.TextMessage {
		must(r, r.document.Validate("/components/schemas/ServerMessage", b))
		var m object
		must(r, json.Unmarshal(b, &m))
		s.messages = append(s.messages, m)
		return true
	}
	s.raw += string(b)
	s.text[string(b[:1])] += string(b[1:])
	return true
}
