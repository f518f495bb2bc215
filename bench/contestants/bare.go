package contestants

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"sandbox/bench/harness"
)

// BareArgument makes this program a server of net/http with nothing behind it.
const BareArgument = "bare"

// Bare is such a server in a process of its own. When it reads a line with the
// name of a file from its stdin, it answers with that document from then on.
type Bare struct {
	*harness.Conversation
	dir string
	URL string
}

func startBare(dir string) (*Bare, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &Bare{dir: dir}
	if b.Conversation, err = harness.Converse(harness.Command{Args: []string{program, BareArgument}}); err != nil {
		return nil, err
	}
	b.URL, err = b.Ask("")
	return b, err
}

// Show makes the server answer with doc.
func (b *Bare) Show(doc []byte) error {
	file := filepath.Join(b.dir, "document")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		return err
	}
	_, err := b.Ask(file)
	return err
}

func (b *Bare) close() error {
	if b == nil {
		return nil
	}
	return b.Close()
}

// ServeBare runs the server until its stdin ends.
func ServeBare() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := &bareHandler{}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if file := lines.Text(); file != "" {
			document, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			h.document.Store(&document)
		}
		fmt.Println("http://" + l.Addr().String())
	}
	return server.Close()
}

// bareHandler answers GET with its document, or with as many bytes as the query
// says. It reads and drops what is sent to it.
type bareHandler struct{ document atomic.Pointer[[]byte] }

func (h *bareHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		_, _ = io.Copy(io.Discard, r.Body)
		return
	}
	if r.URL.RawQuery == "" {
		w.Header().Set("Content-Type", "application/json")
		document := *h.document.Load()
		w.Header().Set("Content-Length", strconv.Itoa(len(document)))
		_, _ = w.Write(document)
		return
	}
	n, err := strconv.ParseInt(r.URL.RawQuery, 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", r.URL.RawQuery)
	for buf := make([]byte, harness.BufferSize); n > 0 && err == nil; n -= int64(len(buf)) {
		_, err = w.Write(buf[:min(n, int64(len(buf)))])
	}
}
