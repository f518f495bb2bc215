package e2b

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	"sandbox/core/ids"
	"sandbox/httpd/e2b/protocol"
	"sandbox/spool"
)

// TestLostEnd follows a command the end of whose output found no room on the disk. It
// wants the client to be told, since without its end the output would look whole.
func TestLostEnd(t *testing.T) {
	t.Parallel()
	s := serve(t)
	home := t.TempDir()
	outputs := spool.Open(spool.Config{Dir: home})
	defer outputs.Close()
	for _, lost := range []bool{true, false} {
		id, dir := ids.Exec.New(), filepath.Join(home, s.box)
		record := fmt.Sprintf(`{"id":%q,"box_id":%q,"status":"exited","exit_code":0,"cmd":["true"],"stdout_bytes":0,"stderr_bytes":0,"lost":%v}`, id, s.box, lost)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := outputs.Get(s.box, id)
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		follow := following{s: s.Server, e: e, send: func(event *protocol.ProcessEvent) error {
			ended = ended || event.GetEnd() != nil
			return nil
		}}
		err = follow.run(t.Context(), visit{}, [2]int64{})
		if lost {
			wantCode(t, err, connect.CodeDataLoss)
		} else if err != nil {
			t.Error(err)
		}
		if ended == lost {
			t.Errorf("lost %v: an end was sent: %v", lost, ended)
		}
	}
}
