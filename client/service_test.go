package client_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/feed"
	"sandbox/core/image"
	"sandbox/core/local"
	"sandbox/core/options"
	"sandbox/daemon"
	"sandbox/test/members"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

// service starts a daemon with real boxes and returns a client of its socket.
func service(t *testing.T) *client.Client {
	t.Helper()
	return serviceAt(t, t.TempDir())
}

// serviceAt is service in a home.
func serviceAt(t *testing.T, home string) *client.Client {
	t.Helper()
	d, err := daemon.Open(t.Context(), daemon.Config{
		Home: home, Beside: programs.Dir(), Listen: daemon.NoListen, Environment: "default",
	}, daemon.Streams{Say: io.Discard, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal("needs root and the programs (make build): ", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx) }()
	c, err := client.New(client.Options{URL: "unix://" + filepath.Join(home, "sandbox.sock")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		boxes, err := c.Boxes(ctx, client.Filter{})
		for _, b := range boxes {
			_, failed := c.RemoveBox(ctx, b.ID, true)
			err = errors.Join(err, failed)
		}
		c.Close()
		cancel()
		if err := errors.Join(err, <-served); err != nil {
			t.Error(err)
		}
	})
	return c
}

// box makes a box of busybox.
func box(t *testing.T, c *client.Client, name string) api.Box {
	t.Helper()
	o := options.Defaults()
	o.Name, o.RootfsPath, o.AutoRemove = name, rootfs.Busybox(t), false
	o.Labels, o.Env = map[string]string{"team": name}, map[string]string{"A": "1"}
	b, err := c.CreateBox(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	if err := c.Healthy(ctx); err != nil {
		t.Fatal(err)
	}
	a, b := box(t, c, "a"), box(t, c, "b")
	members.Equal(t, "a new box", members.Of{
		"status": {a.Status, "running"}, "running": {a.State.Running, true}, "env": {a.Env["A"], "1"}, "name": {a.Name, "a"}, "auto_remove": {a.AutoRemove, false},
	})
	if info := must[api.Info](t)(c.Info(ctx)); info.Usage.Running != 2 || info.Limits.MaxCPUs < 1 || info.APIVersion != "v1" {
		t.Errorf("info %+v", info)
	}
	if me := must[api.Identity](t)(c.Me(ctx)); me.PrincipalType != "local" {
		t.Errorf("me %+v", me)
	}
	stopped := must[api.Box](t)(c.StopBox(ctx, "b", 0))
	if stopped.Status != "stopped" || stopped.StoppedAt == nil {
		t.Errorf("stopped %+v", stopped)
	}
	for _, f := range []struct {
		client.Filter
		want string
	}{
		{client.Filter{}, "b a"}, {client.Filter{Status: "running"}, "a"}, {client.Filter{Name: "b"}, "b"}, {client.Filter{Label: "team=a"}, "a"},
		{client.Filter{Label: "team=b", Status: "running"}, ""},
	} {
		var names []string
		for _, b := range must[[]api.Box](t)(c.Boxes(ctx, f.Filter)) {
			names = append(names, *b.Name)
		}
		if got := strings.Join(names, " "); got != f.want {
			t.Errorf("%+v: %q, want %q", f.Filter, got, f.want)
		}
	}
	for what, failed := range map[string]struct {
		err  error
		kind fault.Kind
	}{
		"get":          {second(c.Box(ctx, "nope")), fault.BoxNotFound},
		"get nothing":  {second(c.Box(ctx, "")), fault.BoxNotFound},
		"get ..":       {second(c.Box(ctx, "..")), fault.BoxNotFound},
		"get a/b":      {second(c.Box(ctx, "a/../a")), fault.BoxNotFound},
		"start":        {second(c.StartBox(ctx, "a")), fault.InvalidState},
		"stop":         {second(c.StopBox(ctx, "b", 0)), fault.InvalidState},
		"remove":       {second(c.RemoveBox(ctx, "a", false)), fault.InvalidState},
		"exec":         {second(c.StartExec(ctx, "b", options.Exec{Cmd: []string{"true"}})), fault.InvalidState},
		"get exec":     {second(c.Exec(ctx, "a", "exec_nope")), fault.ExecNotFound},
		"attach":       {second(c.Attach(ctx, "a", "exec_nope", client.AttachOptions{})), fault.ExecNotFound},
		"terminal":     {second(c.Terminal(ctx, "b", client.TerminalOptions{})), fault.InvalidState},
		"status":       {second(c.Boxes(ctx, client.Filter{Status: "odd"})), fault.InvalidArgument},
		"delete a key": {c.DeleteKey(ctx, "key_nope"), fault.KeyNotFound},
	} {
		var answer *client.Error
		if !fault.Is(failed.err, failed.kind) {
			t.Errorf("%s: %v, want %s", what, failed.err, failed.kind)
		} else if errors.As(failed.err, &answer) && len(answer.RequestID) != 36 {
			t.Errorf("%s: request id %q", what, answer.RequestID)
		}
	}
	if started := must[api.Box](t)(c.StartBox(ctx, b.ID)); started.Status != "running" {
		t.Errorf("started %+v", started)
	}
	if id := must[string](t)(c.RemoveBox(ctx, "b", true)); id != b.ID {
		t.Errorf("removed %s", id)
	}
	must[api.Box](t)(c.StopBox(ctx, "a", time.Millisecond))
	if done := must[api.Collected](t)(c.GC(ctx, 0)); done.Removed != 1 || !slices.Equal(done.Boxes, []string{a.ID}) {
		t.Errorf("collected %+v", done)
	}
}

func second[T any](_ T, err error) error { return err }

func TestServiceKeys(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	made := must[api.Key](t)(c.CreateKey(ctx, client.NewKey{Name: "ci", Permissions: []string{"Boxes"}, ExpiresAt: &until}))
	if !strings.HasPrefix(made.Secret, "sbx_live_") || !made.ExpiresAt.Equal(until) || made.Key != made.Secret || made.Masked != client.NewApiKeyCredential(made.Key).String() {
		t.Errorf("%+v: and we mask it as %s", made, client.NewApiKeyCredential(made.Secret))
	}
	keys := must[[]api.Key](t)(c.Keys(ctx))
	if len(keys) != 1 || keys[0].ID != made.ID || keys[0].Secret != "" || keys[0].Masked != "" || keys[0].Key != made.Masked {
		t.Errorf("%+v", keys)
	}
	if err := c.DeleteKey(ctx, made.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.CreateKey(ctx, client.NewKey{Name: "x", Permissions: []string{"Root"}}); !fault.Is(err, fault.InvalidArgument) {
		t.Errorf("%v", err)
	}
}

func TestServiceExecs(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	box(t, c, "a")
	e := must[api.Exec](t)(c.StartExec(ctx, "a", options.Exec{
		Cmd: []string{"sh", "-c", `printf 'out\377'; echo err >&2; sleep 600`}, Env: map[string]string{"B": "2"}, WorkingDir: "/tmp", Timeout: time.Hour,
	}))
	members.Equal(t, "a new exec", members.Of{
		"status": {e.Status, "running"}, "a PID": {e.PID != nil, true}, "exit code": {e.ExitCode, nil},
		"working directory": {e.WorkingDir, "/tmp"}, "env": {e.Env["B"], "2"}, "timeout": {e.TimeoutMS, 3600000},
	})
	var out, errs bytes.Buffer
	var exit *api.Exit
	for event, err := range c.Events(ctx, "a", e.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case event.Exit != nil:
			exit = event.Exit
		case event.Log.Stream == api.Stderr:
			errs.Write(must[[]byte](t)(event.Log.Bytes()))
		default:
			out.Write(must[[]byte](t)(event.Log.Bytes()))
		}
		if exit == nil && out.Len() == 4 && errs.Len() == 4 { // everything has come except the end
			if ended := must[api.Exec](t)(c.CancelExec(ctx, "a", e.ID, 30*time.Second)); ended.Status != "canceled" || *ended.Signal != 15 {
				t.Errorf("canceled %+v", ended)
			}
		}
	}
	if exit == nil {
		t.Fatal("the stream ended without an exit")
	}
	members.Equal(t, "the stream", members.Of{
		"stdout": {out.String(), "out\xff"}, "stderr": {errs.String(), "err\n"},
		"status": {exit.Status, "canceled"}, "exit code": {exit.ExitCode, 143}, "bytes of stdout": {exit.StdoutBytes, 4},
	})
	if _, err := c.CancelExec(ctx, "a", e.ID, 0); !fault.Is(err, fault.InvalidState) {
		t.Errorf("a second cancel: %v", err)
	}
	late := 0
	for event, err := range c.Events(ctx, "a", e.ID, exit.Seq-1) {
		if late++; err != nil || event.Exit == nil {
			t.Errorf("after the last: %+v, %v", event, err)
		}
	}
	execs := must[[]api.Exec](t)(c.Execs(ctx, "a"))
	if late != 1 || len(execs) != 1 || execs[0].ID != e.ID || *execs[0].StdoutBytes != 4 {
		t.Errorf("%d late events, execs %+v", late, execs)
	}
	if lost := must[api.Exec](t)(c.StartExec(ctx, "a", options.Exec{Cmd: []string{"/nope"}})); lost.Status != "failed" && lost.Status != "running" {
		t.Errorf("%+v", lost)
	}
}

// TestServiceIsBinaryExact sends 64 MiB with all values of bytes in both
// directions at once.
func TestServiceIsBinaryExact(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	box(t, c, "a")
	const size = 64 << 20
	e := must[api.Exec](t)(c.StartExec(ctx, "a", options.Exec{Cmd: []string{"cat"}, Stdin: true}))
	s := must[*client.Session](t)(c.Attach(ctx, "a", e.ID, client.AttachOptions{}))
	defer s.Close()
	if _, err := c.Attach(ctx, "a", e.ID, client.AttachOptions{}); !fault.Is(err, fault.InvalidState) {
		t.Errorf("a second one attached: %v", err)
	}
	in, out := md5.New(), md5.New()
	wrote := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.MultiWriter(s, in), rand.NewChaCha8([32]byte{7}), size)
		wrote <- errors.Join(err, s.CloseInput())
	}()
	got := 0
	end, err := s.Stream(ctx, func(stderr bool, p []byte) error {
		if stderr {
			return fmt.Errorf("on stderr: %q", p)
		}
		got += len(p)
		_, err := out.Write(p)
		return err
	})
	if err := errors.Join(err, <-wrote); err != nil || *end.ExitCode != 0 {
		t.Fatalf("%v, %+v", err, end)
	}
	if got != size || !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
		t.Errorf("%d bytes came back, and their sum %x is not %x", got, out.Sum(nil), in.Sum(nil))
	}
	// A second client attaches that already has all but the last 7 bytes.
	var tail bytes.Buffer
	s = must[*client.Session](t)(c.Attach(ctx, "a", e.ID, client.AttachOptions{AfterStdout: size - 7}))
	defer s.Close()
	if _, err := s.Stream(ctx, func(_ bool, p []byte) error { tail.Write(p); return nil }); err != nil || tail.Len() != 7 {
		t.Errorf("%v, the tail is %q", err, tail.Bytes())
	}
}

func TestServiceTerminal(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	box(t, c, "a")
	s := must[*client.Session](t)(c.Terminal(ctx, "a", client.TerminalOptions{Shell: "/bin/sh", Cols: 90, Rows: 20, Term: "vt100"}))
	defer s.Close()
	var seen strings.Builder
	steps := []struct {
		see string
		do  func() error
	}{
		{"# ", func() error { _, err := io.WriteString(s, "stty size; echo $TERM\n"); return err }},
		{"20 90\r\nvt100\r\n", func() error { return s.Resize(120, 40) }},
		{"", func() error {
			_, err := io.WriteString(s, "until [ \"$(stty size)\" = '40 120' ]; do :; done; sh -c 'echo sl\"\"eeping; exec sleep 600'\n")
			return err
		}},
		{"sleeping\r\n", func() error { return s.Signal("INT") }},
		{"# ", func() error { _, err := io.WriteString(s, "exit 9\n"); return err }},
	}
	end, err := s.Stream(ctx, func(_ bool, p []byte) error {
		seen.Write(p)
		for len(steps) > 0 && strings.Contains(seen.String(), steps[0].see) {
			_, rest, _ := strings.Cut(seen.String(), steps[0].see)
			seen.Reset()
			seen.WriteString(rest)
			do := steps[0].do
			steps = steps[1:]
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || end.ExitCode == nil || *end.ExitCode != 9 {
		t.Errorf("%v, %+v, saw %q", err, end, seen.String())
	}
}

func TestServiceFilesInPlace(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	box(t, c, "a")
	mode, user := 0o2750, "1000"
	made := must[api.MadeDirectory](t)(c.MakeDirectory(ctx, "a", options.MakeDirectory{Path: "/d/with space+é&", Mode: &mode}))
	members.Equal(t, "a directory", members.Of{"created": {made.Created, true}, "mode": {made.Mode.String(), "2750"}, "path": {made.Path, "/d/with space+é&"}})
	must[api.Uploaded](t)(c.Upload(ctx, "a", client.Upload{Dest: "/tmp/f", User: user}, strings.NewReader("12345")))
	moved := must[api.File](t)(c.MoveFile(ctx, "a", options.MoveFile{From: "/tmp/f", To: made.Path + "/g"}))
	stat := must[api.File](t)(c.StatFile(ctx, "a", options.StatFile{Path: moved.Path}))
	members.Equal(t, "a file", members.Of{"size": {stat.Size, 5}, "uid": {stat.UID, 1000}, "name": {stat.Name, "g"}, "the same": {stat, moved}})
	o, names := options.ListFiles{Path: "/d", Depth: 2, PageSize: 1}, []string{}
	for {
		page := must[api.Files](t)(c.ListFiles(ctx, "a", o))
		for _, f := range page.Files {
			names = append(names, f.Name)
		}
		if page.NextPageToken == nil {
			break
		}
		o.PageToken = *page.NextPageToken
	}
	if want := []string{"with space+é&", "g"}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	for what, failed := range map[string]struct {
		err  error
		kind fault.Kind
	}{
		"stat of nothing":     {second(c.StatFile(ctx, "a", options.StatFile{Path: "/nope"})), fault.FileNotFound},
		"list as another":     {second(c.ListFiles(ctx, "a", options.ListFiles{Path: made.Path, User: user})), fault.PermissionDenied},
		"mkdir as another":    {second(c.MakeDirectory(ctx, "a", options.MakeDirectory{Path: "/etc/d", User: user})), fault.PermissionDenied},
		"move as another":     {second(c.MoveFile(ctx, "a", options.MoveFile{From: "/etc/passwd", To: "/tmp/p", User: user})), fault.PermissionDenied},
		"download as another": {second(c.Download(ctx, "a", options.Download{Path: stat.Path, User: user})), fault.PermissionDenied},
		"a full directory":    {second(c.RemoveFile(ctx, "a", options.RemoveFile{Path: "/d"})), fault.InvalidArgument},
		"remove as another":   {second(c.RemoveFile(ctx, "a", options.RemoveFile{Path: "/d", Recursive: true, User: user})), fault.PermissionDenied},
		"up":                  {second(c.RemoveFile(ctx, "a", options.RemoveFile{Path: "/d/.."})), fault.InvalidArgument},
		"no box":              {second(c.StatFile(ctx, "nope", options.StatFile{Path: "/"})), fault.BoxNotFound},
	} {
		if !fault.Is(failed.err, failed.kind) {
			t.Errorf("%s: %v", what, failed.err)
		}
	}
	removed := must[api.RemovedFiles](t)(c.RemoveFile(ctx, "a", options.RemoveFile{Path: "/d", Recursive: true}))
	members.Equal(t, "removed", members.Of{"path": {removed.Path, "/d"}, "files": {removed.Removed, 3}})
}

func TestServiceWatch(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	box(t, c, "a")
	sh(t, c, "mkdir -p /w/d")
	w := must[*feed.Feed[api.FileEvent]](t)(c.WatchFiles(ctx, "a", options.WatchFiles{Path: "/w", Recursive: true}))
	sh(t, c, "cd /w; mkfifo d/p; rm -r d; cd /; rmdir /w")
	var got []string
	for {
		e, err := w.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Type)+" "+e.Path+string(e.Reason))
	}
	if want := []string{"create /w/d/p", "remove /w/d/p", "remove /w/d", "end removed"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Close()
	if _, err := c.WatchFiles(ctx, "a", options.WatchFiles{Path: "/nope"}); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("watch of nothing: %v", err)
	}
	w = must[*feed.Feed[api.FileEvent]](t)(c.WatchFiles(ctx, "a", options.WatchFiles{Path: "/tmp"}))
	w.Close()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the close: %v", err)
	}
}

func TestServiceFiles(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	box(t, c, "a")
	mode, content := 0o751, strings.Repeat("\x00\xff\r\n--", 100_000)
	made := must[api.Uploaded](t)(c.Upload(ctx, "a", client.Upload{Dest: "/new/", Name: `od"d né`, Mode: &mode}, strings.NewReader(content)))
	if made.Dest != `/new/od"d né` || made.Size != int64(len(content)) {
		t.Errorf("%+v", made)
	}
	d := must[*client.Download](t)(c.Download(ctx, "a", options.Download{Path: made.Dest}))
	got := must[[]byte](t)(io.ReadAll(d))
	if d.Close(); string(got) != content || d.Size != int64(len(content)) || d.Name != `od"d né` {
		t.Errorf("%d bytes of %d, name %q", len(got), d.Size, d.Name)
	}
	sh(t, c, "head -c 100000000 /dev/zero >/big")
	d = must[*client.Download](t)(c.Download(ctx, "a", options.Download{Path: "/big"}))
	sh(t, c, ": >/big")
	if n, err := io.Copy(io.Discard, d); !fault.Is(err, fault.Unavailable) {
		t.Errorf("of a file that was cut %d bytes came, and %v", n, err)
	}
	d.Close()
	for what, failed := range map[string]struct {
		err  error
		kind fault.Kind
	}{
		"a directory":   {second(c.Download(ctx, "a", options.Download{Path: "/new"})), fault.IsDirectory},
		"nothing":       {second(c.Download(ctx, "a", options.Download{Path: "/nope", Tar: true})), fault.FileNotFound},
		"relative":      {second(c.Download(ctx, "a", options.Download{Path: "x"})), fault.InvalidArgument},
		"no box":        {second(c.Upload(ctx, "nope", client.Upload{Dest: "/x", Name: "x"}, zeros{})), fault.BoxNotFound},
		"relative dest": {second(c.Upload(ctx, "a", client.Upload{Dest: "x", Name: "x"}, strings.NewReader("x"))), fault.InvalidArgument},
		"no tar":        {second(c.Upload(ctx, "a", client.Upload{Dest: "/x", Name: "x", Tar: true}, strings.NewReader("x"))), fault.InvalidArgument},
	} {
		if !fault.Is(failed.err, failed.kind) {
			t.Errorf("%s: %v, want %s", what, failed.err, failed.kind)
		}
	}
}

// sh runs a command in box a to its end.
func sh(t *testing.T, c *client.Client, command string) {
	e := must[api.Exec](t)(c.StartExec(t.Context(), "a", options.Exec{Cmd: []string{"sh", "-c", command}}))
	for event, err := range c.Events(t.Context(), "a", e.ID, 0) {
		if err != nil || event.Exit != nil && *event.Exit.ExitCode != 0 {
			t.Fatalf("%s: %v", command, err)
		}
	}
}

// zeros never ends, so a refusal must come before all of it was sent.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestServiceRun(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	c := serviceAt(t, home)
	host, err := local.Open(local.Config{Home: home, HelperDir: programs.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close(context.Background())
	must[image.Info](t)(host.Images.Import(t.Context(), "busybox", rootfs.Busybox(t), nil))
	o := options.Defaults()
	o.Image, o.Env, o.WorkingDir = "busybox", map[string]string{"A": "box", "B": "box"}, "/tmp"
	result := must[api.RunResult](t)(c.Run(t.Context(), client.RunRequest{
		Box: o, Stdin: "input",
		Exec: options.Exec{Cmd: []string{"sh", "-c", `cat; echo $A $B; pwd; printf '\377' >&2; kill -9 $$`}, Env: map[string]string{"B": "exec"}},
	}))
	stdout, stderr, err := result.Output()
	members.Equal(t, "the result", members.Of{
		"stdout": {string(stdout), "inputbox exec\n/tmp\n"}, "stderr": {string(stderr), "\xff"},
		"failure": {err, nil}, "exit code": {result.ExitCode, 137}, "signal": {result.Signal, 9}, "reason": {result.Reason, "signaled"},
	})
	if left := must[[]api.Box](t)(c.Boxes(t.Context(), client.Filter{})); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
}

// TestServiceConnect sends more to a program than any buffer holds, and reads all of it
// back, with the end behind it.
func TestServiceConnect(t *testing.T) {
	t.Parallel()
	c := service(t)
	ctx := t.Context()
	box(t, c, "a")
	sh(t, c, "nc -ll -p 8080 -e cat </dev/null >/dev/null 2>&1 &")
	var conn net.Conn
	for conn == nil { // it listens soon
		var err error
		if conn, err = c.Connect(ctx, "a", 8080); err != nil && !fault.Is(err, fault.PortUnreachable) {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	go func() {
		_, _ = conn.Write(text)
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes came back of %d, %v", len(got), len(text), err)
	}
	if _, err := c.Connect(ctx, "a", 1); !fault.Is(err, fault.PortUnreachable) {
		t.Errorf("where nobody listens: %v", err)
	}
	if _, err := c.Connect(ctx, "a", 65536); !fault.Is(err, fault.InvalidArgument) {
		t.Errorf("what is no port: %v", err)
	}
	other, err := c.Connect(ctx, "a", 8080)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Error(err)
	}
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}
