package backend

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/fault"
)

// What was made here is forgotten once it is gone, however it went, and nothing else is.
func TestForgetGone(t *testing.T) {
	t.Parallel()
	m := made{boxes: map[string]bool{}}
	lists := 0
	fail := errors.New("no answer")
	list := func() ([]api.Box, error) {
		lists++
		return []api.Box{{ID: "box_0"}, {ID: "box_1"}, {ID: "of another"}}, fail
	}
	for i := range core.MaxBoxes + 1 {
		if err := m.remember(fmt.Sprint("box_", i), true); err != nil {
			t.Fatal(err)
		}
		m.forgetGone(list)
	}
	if len(m.boxes) != core.MaxBoxes+1 || lists != 1 {
		t.Errorf("after %d lists that failed %d boxes are noted", lists, len(m.boxes))
	}
	fail = nil
	m.forgetGone(list)
	m.forgetGone(list)
	if len(m.boxes) != 2 || !m.boxes["box_0"] || !m.boxes["box_1"] || lists != 2 {
		t.Errorf("after %d lists %v are noted", lists, m.boxes)
	}
}

// A box that a shutdown could not stop is left to Close, and none that it has stopped.
func TestShutdownThatFails(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var removed []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodDelete:
			removed = append(removed, path.Base(r.URL.Path))
			_, _ = fmt.Fprintf(w, `{"id":%q,"removed":true}`, path.Base(r.URL.Path))
		case strings.HasSuffix(r.URL.Path, "/box_1:stop"):
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"code":"unavailable","message":"the daemon ends"}}`)
		default:
			_, _ = io.WriteString(w, `{"id":"box_0","status":"stopped"}`)
		}
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Credential: client.NewApiKeyCredential("sk_" + strings.Repeat("a", 32))})
	if err != nil {
		t.Fatal(err)
	}
	on := OnServer(c, true)
	for i := range 2 {
		if err := on.(*serverBoxes).remember(fmt.Sprint("box_", i), true); err != nil {
			t.Fatal(err)
		}
	}
	if err := on.Shutdown(t.Context(), 0); !fault.Is(err, fault.Unavailable) {
		t.Errorf("shutdown: %v", err)
	}
	if err := on.Close(t.Context()); err != nil || !slices.Equal(removed, []string{"box_1"}) {
		t.Errorf("%v were removed, %v", removed, err)
	}
}
