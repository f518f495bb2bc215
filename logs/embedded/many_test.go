package embedded_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// TestTooMany keeps as many statements running as the engine allows, with
// inserts whose data do not end. All others must be refused at once, until the
// clients of these disconnect.
func TestTooMany(t *testing.T) {
	t.Parallel()
	const most, more = 64, 6
	e, _ := engine(t, t.TempDir())
	client := web(t, e)
	open, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	refused := make(chan string, most+more)
	var all sync.WaitGroup
	for range most + more {
		data, source := io.Pipe()
		context.AfterFunc(open, func() { _ = source.CloseWithError(context.Canceled) })
		all.Go(func() {
			query := url.Values{"query": {"INSERT INTO otel.otel_logs (Body) FORMAT JSONEachRow"}}
			r, err := http.NewRequestWithContext(open, http.MethodPost, "http://engine/?"+query.Encode(), data)
			if err != nil {
				t.Error(err)
				return
			}
			if answer, err := client.Do(r); err == nil {
				refused <- answer.Header.Get("X-ClickHouse-Exception-Code")
				_ = answer.Body.Close()
			}
		})
	}
	for range more {
		if code := <-refused; code != "202" {
			t.Errorf("got code %s", code)
		}
	}
	if answer := ask(t, client, "SELECT 1"); !strings.HasPrefix(answer, "Code: 202.") {
		t.Errorf("got %s", answer)
	}
	hangUp()
	all.Wait()
	answer := ""
	for strings.HasPrefix(answer, "Code: 202.") || answer == "" { // only the engine knows when they have ended
		answer = ask(t, client, "SELECT count() FROM otel.otel_logs")
	}
	if answer != "0\n" || len(refused) > 0 {
		t.Errorf("inserts that did not end stored %s rows, and %d more were refused", answer, len(refused))
	}
}
