package kubernetes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"

	"sandbox/core/fault"
)

// TestForwardHangs has an API server take connections and then say no more. That holds
// neither a Connect whose context ends, nor another one, nor Close.
func TestForwardHangs(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"before the upgrade": func(http.ResponseWriter, *http.Request) {},
		"after it": func(w http.ResponseWriter, r *http.Request) {
			up := websocket.Upgrader{Subprotocols: []string{constants.WebsocketsSPDYTunnelingPortForwardV1}}
			if _, err := up.Upgrade(w, r, nil); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came, end := make(chan bool), make(chan bool)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer(w, r)
				came <- true
				<-end
			}))
			defer server.Close()
			defer close(end)
			e, err := open(Config{Program: "none", Reach: ReachForward}, connection{rest: &rest.Config{Host: server.URL}, namespace: "none"})
			if err != nil {
				t.Fatal(err)
			}
			w, err := e.lines.of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "none", UID: "none"}})
			if err != nil {
				t.Fatal(err)
			}
			connect := func(ctx context.Context) <-chan error {
				failed := make(chan error, 1)
				go func() {
					_, err := w.host.Connect(ctx, true)
					failed <- err
				}()
				<-came
				return failed
			}
			first := connect(t.Context())
			ctx, cancel := context.WithCancel(t.Context())
			second := connect(ctx)
			cancel()
			if err := <-second; !fault.Is(err, fault.Canceled) {
				t.Errorf("a Connect that was canceled: %v", err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if err := <-first; !fault.Is(err, fault.Canceled) {
				t.Errorf("a Connect of an engine that was closed: %v", err)
			}
		})
	}
}
