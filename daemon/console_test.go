package daemon

import (
	"net/http"
	"strings"
	"testing"

	"sandbox/client"
)

// TestConsole signs a browser in through the socket, and wants the session to outlive
// the daemon, with its terminal's box, and to end where there is no console.
func TestConsole(t *testing.T) {
	home, runtime := t.TempDir(), newRuntime(t)
	forget(t)
	d := launch(t, home, runtime())
	link, cookie := signIn(t, d)
	if !strings.HasPrefix(link, d.Address.URL+"/ui/#sign-in=") {
		t.Errorf("the link is %s, the daemon's address %s", link, d.Address.URL)
	}
	listen := func(c *Config) { c.Listen = strings.TrimPrefix(d.Address.URL, "http://") }
	if got := session(t, d, cookie); got != http.StatusOK {
		t.Errorf("the session: %d", got)
	}
	if err := d.end(); err != nil {
		t.Fatal(err)
	}
	again := launch(t, home, runtime(), listen)
	if got := session(t, again, cookie); got != http.StatusOK {
		t.Errorf("the session after a restart: %d", got)
	}
	if err := again.end(); err != nil {
		t.Fatal(err)
	}
	none := launch(t, home, runtime(), listen, func(c *Config) { c.NoConsole = true })
	if got := session(t, none, cookie); got != http.StatusUnauthorized {
		t.Errorf("the session without a console: %d", got)
	}
	if _, err := linkOf(t, none); err == nil || !strings.Contains(err.Error(), "no web console") {
		t.Errorf("a link without a console: %v", err)
	}
}

// TestConsoleNeedsAddress wants the daemon to say what a browser needs.
func TestConsoleNeedsAddress(t *testing.T) {
	forget(t)
	d := launch(t, t.TempDir(), newRuntime(t)(), func(c *Config) { c.Listen = NoListen })
	if _, err := linkOf(t, d); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v", err)
	}
}

// linkOf asks for a link through the daemon's socket.
func linkOf(t *testing.T, d *run) (string, error) {
	t.Helper()
	c, err := client.New(client.Options{URL: "unix://" + d.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	link, _, err := c.ConsoleLink(t.Context())
	return link, err
}

// signIn follows a link.
func signIn(t *testing.T, d *run) (link string, cookie *http.Cookie) {
	t.Helper()
	link, err := linkOf(t, d)
	if err != nil {
		t.Fatal(err)
	}
	page, token, _ := strings.Cut(link, "#sign-in=")
	resp, err := fresh(t, "").Post(page+"session", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent || len(resp.Cookies()) != 1 {
		t.Fatalf("%s, cookies %v", resp.Status, resp.Cookies())
	}
	return link, resp.Cookies()[0]
}

// session returns the status of a request of a session.
func session(t *testing.T, d *run, cookie *http.Cookie) int {
	t.Helper()
	r, err := http.NewRequest("GET", d.Address.URL+"/ui/api/v1/me", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(cookie)
	resp, err := fresh(t, "").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
